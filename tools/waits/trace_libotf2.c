/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/trace_libotf2.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static _Atomic OTF2_ErrorCode noted_code;
static _Atomic int noted_errno;

static OTF2_ErrorCode no_message(void *arg, const char *file, uint64_t line,
                                 const char *function, OTF2_ErrorCode code,
                                 const char *format, va_list ap)
{
    (void)arg;
    (void)file;
    (void)line;
    (void)function;
    (void)format;
    (void)ap;
    if (code != OTF2_SUCCESS && noted_code == OTF2_SUCCESS) {
        noted_code = code;
        noted_errno = errno;
    }
    return code;
}

void joule_otf2_silence(void)
{
    noted_code = OTF2_SUCCESS;
    noted_errno = 0;
    OTF2_Error_RegisterCallback(no_message, NULL);
}

OTF2_ErrorCode joule_otf2_noted(void)
{
    return noted_code;
}

static OTF2_FlushType before_flush(void *arg, OTF2_FileType type,
                                   OTF2_LocationRef location, void *caller,
                                   bool is_final)
{
    (void)arg;
    (void)type;
    (void)location;
    (void)caller;
    (void)is_final;
    return OTF2_FLUSH;
}

OTF2_ErrorCode joule_otf2_prepare(OTF2_Archive *archive)
{
    static const OTF2_FlushCallbacks callbacks = {.otf2_pre_flush =
                                                      before_flush};
    OTF2_ErrorCode code =
        OTF2_Archive_SetFlushCallbacks(archive, &callbacks, NULL);

    return code == OTF2_SUCCESS
               ? OTF2_Archive_SetSerialCollectiveCallbacks(archive)
               : code;
}

int joule_otf2_check(OTF2_ErrorCode code, struct joule_error *err)
{
    bool is_full =
        noted_errno == ENOSPC || noted_errno == EDQUOT || noted_errno == EFBIG;

    if (code == OTF2_SUCCESS)
        return 0;
    return joule_error_set(
        err, is_full ? noted_errno : EIO, "cannot write the archive: %s",
        is_full ? strerror(noted_errno) : OTF2_Error_GetDescription(code));
}
