package messages

import "testing"

// A workspace is a text (S-012): one that means another directory for everybody
// who says it is none.
func TestCheckDir(t *testing.T) {
	for dir, allowed := range map[string]bool{
		"": true, "/": true, "/srv/work": true, "/srv/work/": true, `C:\work`: true, "d:/shop": true, `\\host\share`: true,
		".": false, "./work": false, "..": false, "work": false, "~/shop": false, " /srv": false, "C:": false, "C:work": false, `\work`: false, "é:/": false,
	} {
		err := CheckDir("cwd", dir)
		if (err == nil) != allowed || err != nil && err.Code != BadRequest {
			t.Errorf("%q: %v", dir, err)
		}
	}
}
