package sessionlog

import (
	"fmt"
	"reflect"
	"testing"
)

// equal fails the test at once when the two differ. Values are compared deeply.
func equal(t testing.TB, want, got any, about ...any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%s\nwant %#v\n got %#v", fmt.Sprint(about...), want, got)
	}
}

func isTrue(t testing.TB, got bool, about ...any) {
	t.Helper()
	if !got {
		t.Fatalf("want true: %s", fmt.Sprint(about...))
	}
}

func noError(t testing.TB, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", fmt.Sprint(about...), err)
	}
}
