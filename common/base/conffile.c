/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules are those of slurm.conf(5) and of Slurm's parser of these files,
 * in their order: a '#' starts a comment in a quoted value too, a comment
 * cannot be continued, blanks may follow the backslash that continues a line,
 * escapes are gone before a line is split at blanks, and a NUL hides the rest
 * of its line.
 */
#include "common/base/conffile.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define END (-1) /* of the logical line */

/* Where the walk stands; copied to look ahead. */
struct cursor {
    const char *p, *end;
    unsigned line; /* of *p, counted from 1 */
};

static bool is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
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
    if (look.p < look.end &&
        (*look.p == '\0' || (*look.p == '#' && look.p > c->p + 1)))
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
        if (c->p < c->end && (*c->p == '#' || *c->p == '\0'))
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

static void take_word(struct cursor *c, char *out)
{
    int ch;

    while ((ch = look(c)) != END && !is_blank(ch))
        *out++ = (char)take(c);
    *out = '\0';
}

static bool take_value(struct cursor *c, char *out)
{
    if (take_quoted(c, out))
        return true;
    take_word(c, out);
    return out[0] != '\0';
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

/* The pair at the cursor, if there is one.  An empty value is none unless it is
 * in quotes, and Include takes no '='. */
static bool take_pair(struct cursor *c, char *key, char **ret_value)
{
    struct cursor ahead = *c;
    char *out = key;

    while (is_key(look(&ahead)))
        *out++ = (char)take(&ahead);
    *out++ = '\0';
    *ret_value = out;
    if (key[0] == '\0' || strcasecmp(key, "Include") == 0 ||
        !take_assignment(&ahead) || !take_value(&ahead, out))
        return false;
    *c = ahead;
    return true;
}

/* "Include NAME", without blanks before it, and without quotes around NAME. */
static bool take_include(struct cursor *c, char *name)
{
    static const char word[] = "Include";
    struct cursor ahead = *c;

    for (size_t i = 0; i < strlen(word); i++)
        if (tolower(take(&ahead)) != tolower((unsigned char)word[i]))
            return false;
    if (look(&ahead) != END && !is_blank(look(&ahead)))
        return false;
    skip_blanks(&ahead);
    take_word(&ahead, name);
    if (!name[0])
        return false;
    *c = ahead;
    return true;
}

/* The rest of the logical line, without blanks at its end. */
static void take_rest(struct cursor *c, char *out)
{
    size_t len = 0;

    while (look(c) != END)
        out[len++] = (char)take(c);
    while (len > 0 && is_blank((unsigned char)out[len - 1]))
        len--;
    out[len] = '\0';
}

static bool takes_line(const char *key)
{
    static const char *const keys[] = {"DownNodes", "FrontendName", "NodeName",
                                       "NodeSet", "PartitionName"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcasecmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* All of the logical line at the cursor, which ends up at its end. */
static int walk_line(struct cursor *c, char *text, joule_conffile_f each,
                     void *arg)
{
    unsigned line = c->line;
    bool first = true, more = true; /* another pair may come */
    char *value;
    int rc = 0;

    if (take_include(c, text)) {
        more = false;
        rc = each("Include", text, line, arg);
    }
    for (skip_blanks(c); rc == 0 && look(c) != END; skip_blanks(c)) {
        line = c->line;
        if (more && take_pair(c, text, &value)) {
            if (first)
                more = takes_line(text);
            first = false;
            rc = each(text, value, line, arg);
        } else {
            take_rest(c, text);
            rc = each(NULL, text, line, arg);
        }
    }
    return rc;
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
    if (key && strcasecmp(key, search->key) == 0)
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
