// Package conformance drives Parley with recorded vectors: reference input with the output the reference gave.
// It decides whether one vector passed, failed, or was improved on by a declared deviation, and names the first
// difference. It never decides behaviour, and it judges by its own reading of JSON, not by the code under test.
package conformance
