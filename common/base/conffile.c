/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules are those of slurm.conf(5) and of Slurm's parser of these files,
 * in their order: a '#' starts a comment in a quoted value too, a comment
 * cannot be continued, blanks may follow the backslash that continues a line,
 * and escapes are gone before a line is split at blanks.
 */
#include "common/base/conffile.h"

#include <stdbool.h>
#include <stdlib.h>
#include <strings.h>

#define END (-1) /* of the logical line */

/* Where the walk stands; copied to look ahead. */
struct cursor {
    const char *p, *end;
    unsigned line; /* of *p, counted from 1 */
};

static bool is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' ||
           c == '\0';
}

static bool is_key(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z') || c == '_' || c == '.';
}

static bool at_newline(const struct cursor *c)
{
    return c->p == c->end || *c->p == '\n';
}

/* Step over a backslash, blanks, perhaps a comment, and the newline, if that
 * is what stands here. */
static bool continues(struct cursor *c)
{
    struct cursor look = *c;

    look.p++;
    while (look.p < look.end && is_blank((unsigned char)*look.p))
        look.p++;
    if (look.p < look.end && *look.p == '#' && look.p > c->p + 1)
        while (!at_newline(&look))
            look.p++;
    if (!at_newline(&look))
        return false;
    if (look.p < look.end) {
        look.p++;
        look.line++;
    }
    *c = look;
    return true;
}

/* Move to the next character of the logical line, over comments and
 * continuations, and return it; *ret_length is 1, or 2 when escaped. */
static int peek(struct cursor *c, int *ret_length)
{
    *ret_length = 1;
    for (;;) {
        if (c->p < c->end && *c->p == '#')
            while (!at_newline(c))
                c->p++;
        if (at_newline(c))
            return END;
        if (*c->p != '\\')
            return (unsigned char)*c->p;
        if (!continues(c)) {
            *ret_length = 2;
            return (unsigned char)c->p[1];
        }
    }
}

static int look(struct cursor *c)
{
    int length;

    return peek(c, &length);
}

static int take(struct cursor *c)
{
    int length;
    int ch = peek(c, &length);

    if (ch != END)
        c->p += length;
    return ch;
}

static void skip_blanks(struct cursor *c)
{
    while (is_blank(look(c)))
        take(c);
}

/* A quoted value, if there is a closing quote with a blank or the end behind
 * it; otherwise the quotes belong to the value. */
static bool take_quoted(struct cursor *c, char *out)
{
    struct cursor ahead = *c;
    int ch;

    if (take(&ahead) != '"')
        return false;
    while ((ch = take(&ahead)) != '"') {
        if (ch == END)
            return false;
        *out++ = (char)ch;
    }
    ch = look(&ahead);
    if (ch != END && !is_blank(ch))
        return false;
    *out = '\0';
    *c = ahead;
    return true;
}

static void take_value(struct cursor *c, char *out)
{
    int ch;

    if (take_quoted(c, out))
        return;
    while ((ch = look(c)) != END && !is_blank(ch))
        *out++ = (char)take(c);
    *out = '\0';
}

static void skip_word(struct cursor *c)
{
    int ch;

    while ((ch = look(c)) != END && !is_blank(ch))
        take(c);
}

/* The '=' behind a key, with the operator Slurm allows before it ("+="). */
static bool take_assignment(struct cursor *c)
{
    struct cursor ahead = *c;
    int ch;

    skip_blanks(&ahead);
    ch = take(&ahead);
    if (ch == '+' || ch == '-' || ch == '*' || ch == '/')
        ch = take(&ahead);
    if (ch != '=')
        return false;
    skip_blanks(&ahead);
    *c = ahead;
    return true;
}

/* All pairs of the logical line at the cursor, which ends up at its end. */
static int walk_line(struct cursor *c, char *text, joule_conffile_f each,
                     void *arg)
{
    bool first = true;
    int rc;

    for (skip_blanks(c); look(c) != END; skip_blanks(c)) {
        unsigned line = c->line;
        const char *key = text;
        char *value = text;

        while (is_key(look(c)))
            *value++ = (char)take(c);
        *value++ = '\0';
        if (key[0] != '\0' && take_assignment(c)) {
            take_value(c, value);
        } else if (first && strcasecmp(key, "Include") == 0 &&
                   is_blank(look(c))) {
            key = "Include";
            skip_blanks(c);
            take_value(c, value);
        } else {
            skip_word(c);
            first = false;
            continue;
        }
        first = false;
        rc = each(key, value, line, arg);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int joule_conffile_walk(const char *text, size_t len, joule_conffile_f each,
                        void *arg)
{
    struct cursor c = {.p = text, .end = text + len, .line = 1};
    char *buf = malloc(len + 2); /* a key, a value and their ends */
    int rc = 0;

    if (!buf)
        return -1;
    for (;;) {
        rc = walk_line(&c, buf, each, arg);
        if (rc != 0 || c.p == c.end)
            break;
        c.p++; /* the newline */
        c.line++;
    }
    free(buf);
    return rc;
}

struct search {
    const char *key;
    unsigned line;
};

static int note_line(const char *key, const char *value, unsigned line,
                     void *arg)
{
    struct search *search = arg;

    (void)value;
    if (strcasecmp(key, search->key) == 0)
        search->line = line;
    return 0;
}

unsigned joule_conffile_line(const char *text, size_t len, const char *key)
{
    struct search search = {.key = key};

    if (joule_conffile_walk(text, len, note_line, &search) < 0)
        return 0;
    return search.line;
}
