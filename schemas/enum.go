package schemas

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// EnumText is a value of an enumeration of sluice.v1 as logs, metrics and SQL show it:
// its name without that of its type, in lower case ("token_budget"). It is empty for
// the value 0, which says nothing, and "unknown" for one of a newer version.
func EnumText(e protoreflect.Enum) string {
	values := e.Descriptor().Values()
	v := values.ByNumber(e.Number())
	switch {
	case v == nil:
		return "unknown"
	case v.Number() == 0:
		return ""
	}
	prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
	return strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix))
}
