# SPDX-License-Identifier: GPL-2.0-or-later
#
# page.awk - the page of `joule waits` as strings of C: what stands before its data, and
# what stands behind.
#
#     awk -f page.awk -v folder=page -v style=HEX -v script=HEX > page_text.h
#
# HEX are the SHA-256 of page.css and page.js.  In page.html @STYLE@ and @SCRIPT@ become
# these files, which have the elements for themselves, @STYLE_HASH@ and @SCRIPT_HASH@
# what Content-Security-Policy calls them; @DATA@ is where the data goes.

# 256 bits in hexadecimal digits, in base64: three digits are two letters.
function base64(hex,    letters, digits, text, i, j, bits) {
    if (length(hex) != 64) {
        print "page.awk: '" hex "' is no SHA-256" > "/dev/stderr"
        failed = 1
        exit 1
    }
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    digits = "0123456789abcdef"
    hex = hex "00"
    for (i = 1; i < 66; i += 3) {
        bits = 0
        for (j = i; j < i + 3; j++)
            bits = bits * 16 + index(digits, substr(hex, j, 1)) - 1
        text = text substr(letters, int(bits / 64) + 1, 1) substr(letters, bits % 64 + 1, 1)
    }
    return substr(text, 1, 43) "="
}

# As a string of C; a question mark might begin a trigraph.
function put(text, end) {
    gsub(/[\\"?]/, "\\\\&", text)
    printf "    \"%s%s\",\n", text, end
}

function put_file(name,    line, status) {
    while ((status = (getline line < (folder "/" name))) > 0) {
        if (tolower(line) ~ /<(\/(script|style)|!--)/) {
            print name ": '" line "' would end its element" > "/dev/stderr"
            failed = 1
        }
        put(line, "\\n")
    }
    if (status < 0) {
        print "cannot read " name > "/dev/stderr"
        failed = 1
    }
}

BEGIN {
    print "/* Made of the files of page/ by page.awk. */"
    print "static const char *const page_head[] = {"
    while ((status = (getline line < (folder "/page.html"))) > 0) {
        sub(/@STYLE_HASH@/, base64(style), line)
        sub(/@SCRIPT_HASH@/, base64(script), line)
        if (!match(line, /@(STYLE|SCRIPT|DATA)@/)) {
            put(line, "\\n")
            continue
        }
        what = substr(line, RSTART + 1, RLENGTH - 2)
        rest = substr(line, RSTART + RLENGTH)
        put(substr(line, 1, RSTART - 1))
        if (what == "DATA")
            print "    NULL,\n};\nstatic const char *const page_tail[] = {"
        else
            put_file(what == "STYLE" ? "page.css" : "page.js")
        put(rest, "\\n")
    }
    print "    NULL,\n};"
    exit status < 0 || failed
}
