package sqlite

const setLockOFD = 90 // F_OFD_SETLK
