/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpufreq/journal.h"

static const char boot[JOULE_BOOT_ID_MAX] =
    "11111111-2222-3333-4444-555555555555";

static void fill(struct joule_journal *j)
{
    struct joule_entry e = {.policy = 7,
                            .touched = 9,
                            .original = {.governor = "ondemand",
                                         .min_khz = 1200000,
                                         .max_khz = 2400000}};
    struct joule_holder h = {
        .job = 12, .step = "batch", .pid = 4711, .start = 99, .namespace = 5};

    joule_journal_init(j, boot);
    ck_assert_ptr_nonnull(joule_journal_add_entry(j, &e));
    e.policy = 0;
    e.touched = 31;
    e.tries = 3;
    strcpy(e.original.governor, "userspace");
    strcpy(e.original.epp, "balance_power");
    e.original.setspeed_khz = 1800000;
    ck_assert_ptr_nonnull(joule_journal_add_entry(j, &e));
    joule_cpus_add(&h.policies, 0);
    joule_cpus_add(&h.policies, 7);
    joule_request_parse("1500000-2600000:performance", &h.request, NULL);
    ck_assert_uint_eq(joule_journal_add_holder(j, &h)->number, 1);
    h.is_watch = true;
    memset(&h.request, 0, sizeof(h.request));
    ck_assert_uint_eq(joule_journal_add_holder(j, &h)->number, 2);
}

static char *text_of(const struct joule_journal *j, size_t *len)
{
    char *text = joule_journal_format(j, len);

    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(strlen(text), *len);
    return text;
}

START_TEST(there_and_back)
{
    struct joule_journal j, k;
    size_t len, again;
    char *text, *other;

    fill(&j);
    text = text_of(&j, &len);
    ck_assert_int_eq(joule_journal_parse(text, len, &k, NULL), 0);
    ck_assert_uint_eq(k.entry_count, 2);
    ck_assert_uint_eq(k.holder_count, 2);
    ck_assert_uint_eq(k.entry[0].policy, 0);
    ck_assert_uint_eq(k.entry[0].tries, 3);
    ck_assert_str_eq(k.entry[0].original.epp, "balance_power");
    ck_assert_str_eq(k.entry[1].original.epp, "");
    ck_assert_uint_eq(k.entry[1].original.max_khz, 2400000);
    ck_assert_int_eq(k.holder[0].is_watch, 0);
    ck_assert_int_eq(k.holder[1].is_watch, 1);
    ck_assert(joule_cpus_has(&k.holder[0].policies, 7));
    ck_assert_str_eq(k.holder[0].step, "batch");
    ck_assert_mem_eq(&k.holder[0].request, &j.holder[0].request,
                     sizeof(j.holder[0].request));
    other = text_of(&k, &again);
    ck_assert_str_eq(text, other);
    free(text);
    free(other);
    joule_journal_clear(&j);
    joule_journal_clear(&k);
}
END_TEST

static void must_refuse(const char *text, size_t len)
{
    struct joule_journal j;
    struct joule_error err = {""};

    ck_assert_int_eq(joule_journal_parse(text, len, &j, &err), -1);
    ck_assert_int_eq(errno, EBADMSG);
    ck_assert_ptr_null(j.entry);
    ck_assert_ptr_null(j.holder);
    ck_assert_ptr_nonnull(strstr(err.text, "the journal "));
}

START_TEST(every_truncation)
{
    struct joule_journal j;
    size_t len;
    char *text;

    fill(&j);
    text = text_of(&j, &len);
    for (size_t n = 0; n < len; n++)
        must_refuse(text, n);
    free(text);
    joule_journal_clear(&j);
}
END_TEST

START_TEST(every_bit)
{
    struct joule_journal j;
    size_t len;
    char *text;

    fill(&j);
    text = text_of(&j, &len);
    for (size_t n = 0; n < len * 8; n++) {
        text[n / 8] ^= (char)(1 << n % 8);
        must_refuse(text, len);
        text[n / 8] ^= (char)(1 << n % 8);
    }
    free(text);
    joule_journal_clear(&j);
}
END_TEST

/* CRC-32 once more, in another way: by its table. */
static unsigned crc_of(const char *text, size_t len)
{
    unsigned table[256], crc = ~0u;

    for (unsigned n = 0; n < 256; n++) {
        table[n] = n;
        for (int k = 0; k < 8; k++)
            table[n] =
                table[n] & 1 ? 0xEDB88320u ^ table[n] >> 1 : table[n] >> 1;
    }
    while (len-- > 0)
        crc = table[(crc ^ (unsigned char)*text++) & 255] ^ crc >> 8;
    return ~crc;
}

/* The text with a right checksum, [from] replaced by [to]. */
static char *forge(const char *from, const char *to, size_t *len)
{
    struct joule_journal j;
    char *text, *at, *forged = malloc(8192);
    size_t n;

    fill(&j);
    text = text_of(&j, &n);
    joule_journal_clear(&j);
    *strstr(text, "crc32=") = '\0';
    at = strstr(text, from);
    ck_assert_ptr_nonnull(at);
    *len = (size_t)sprintf(forged, "%.*s%s%s", (int)(at - text), text, to,
                           at + strlen(from));
    *len +=
        (size_t)sprintf(forged + *len, "crc32=%08x\n", crc_of(forged, *len));
    free(text);
    return forged;
}

START_TEST(forged)
{
    static const char *const pairs[][2] = {
        {"policy=7", "policy=8192"},
        {"policy=7", "policy=0"},
        {"policy=7", "policy=-7"},
        {"policy=7", "policy= 7"},
        {"policy=7 ", "policy=7  "},
        {"policy=7", "policy=007x"},
        {"governor=ondemand", "governor=../../x"},
        {"governor=ondemand", "governor="},
        {"governor=ondemand",
         "governor=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {"max=2400000", "max=1"},
        {"max=2400000", "max=4294967296"},
        {"touched=9", "touched=32"},
        {"touched=9", "touched=9 more=1"},
        {"tries=0", "tries=4294967296"},
        {"job=12", "job=4294967296"},
        {"step=batch", "step=a b"},
        {"pid=4711", "pid=0"},
        {"pid=4711", "pid=2147483648"},
        {"holder=1", "holder=2"},
        {"holder=1", "holder=0"},
        {"watch=0", "watch=1"},
        {"watch=1", "watch=0"},
        {"watch=1", "watch=2"},
        {"request=1500000-2600000:performance", "request=fast"},
        {"request=1500000-2600000:performance", "request=-"},
        {"policies=0,7", "policies=0,6"},
        {"policies=0,7", "policies=0-9999"},
        {"policies=0,7", "policies="},
        {"boot=1", "Boot=1"},
        {"boot=1", "\nboot=1"},
        {"journal 1", "journal 2"},
        {"\nholder=2", "\npolicy=9 governor=a min=1 max=1 setspeed=0 epp=- "
                       "touched=0 tries=0\nholder=2"},
    };
    size_t len;
    char *text = forge(pairs[_i][0], pairs[_i][1], &len);

    must_refuse(text, len);
    free(text);
    /* What is forged into the same is taken: it was not the checksum. */
    text = forge(pairs[_i][0], pairs[_i][0], &len);
    {
        struct joule_journal j;

        ck_assert_int_eq(joule_journal_parse(text, len, &j, NULL), 0);
        joule_journal_clear(&j);
    }
    free(text);
}
END_TEST

/* Random journals come back; random damage with a right checksum never
 * crashes, and what is taken can be written again. */
START_TEST(damage)
{
    unsigned taken = 0;

    srand(2);
    for (int n = 0; n < 20000; n++) {
        struct joule_journal j;
        size_t len, body;
        char *text = forge("policy", "policy", &len);

        body = (size_t)(strstr(text, "crc32=") - text);
        for (int i = rand() % 4; i >= 0; i--)
            text[30 + (size_t)rand() % (body - 30)] =
                "0123456789=- \nabz,"[rand() % 18];
        sprintf(text + body, "crc32=%08x\n", crc_of(text, body));
        if (joule_journal_parse(text, strlen(text), &j, NULL) == 0) {
            size_t again;
            char *other = text_of(&j, &again);

            taken++;
            free(other);
            joule_journal_clear(&j);
        }
        free(text);
    }
    ck_assert_uint_gt(taken, 100);
}
END_TEST

START_TEST(many)
{
    struct joule_entry e = {
        .original = {.governor = "performance", .max_khz = 1}};
    struct joule_holder h = {.step = "0", .pid = 1};
    struct joule_journal j, k;
    size_t len;
    char *text;

    joule_journal_init(&j, boot);
    /* Backwards: they are kept in order. */
    for (unsigned i = 0; i < 2000; i++) {
        e.policy = JOULE_CPUS_MAX - 1 - 2 * i;
        ck_assert_ptr_nonnull(joule_journal_add_entry(&j, &e));
        joule_cpus_add(&h.policies, e.policy);
    }
    joule_request_parse("high", &h.request, NULL);
    for (unsigned i = 0; i < 50; i++)
        ck_assert_ptr_nonnull(joule_journal_add_holder(&j, &h));
    text = text_of(&j, &len);
    ck_assert_int_eq(joule_journal_parse(text, len, &k, NULL), 0);
    ck_assert_uint_eq(k.entry_count, 2000);
    ck_assert_uint_eq(joule_cpus_count(&k.holder[49].policies), 2000);
    joule_journal_remove_entry(&k, 8191);
    joule_journal_remove_entry(&k, 8190);
    ck_assert_uint_eq(k.entry_count, 1999);
    joule_journal_remove_holder(&k, 0);
    ck_assert_uint_eq(k.holder[0].number, 2);
    free(text);
    joule_journal_clear(&j);
    joule_journal_clear(&k);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpufreq journal");
    TCase *c = tcase_create("journal");
    SRunner *runner;
    int failed;

    tcase_add_test(c, there_and_back);
    tcase_add_test(c, every_truncation);
    tcase_add_test(c, every_bit);
    tcase_add_loop_test(c, forged, 0, 32);
    tcase_add_test(c, damage);
    tcase_add_test(c, many);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
