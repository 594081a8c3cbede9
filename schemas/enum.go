package schemas

import (
	"fmt"
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

// ParseEnum is the value of an enumeration of sluice.v1 that a text names: as EnumText
// does or by its full name, in either case. The value 0 has no name.
func ParseEnum[E interface {
	~int32
	protoreflect.Enum
}](text string) (E, error) {
	values := E(0).Descriptor().Values()
	known := make([]string, 0, values.Len()-1)
	for i := range values.Len() {
		e := E(values.Get(i).Number())
		if e == 0 {
			continue
		}
		name := EnumText(e)
		if strings.EqualFold(text, name) || strings.EqualFold(text, string(values.Get(i).Name())) {
			return e, nil
		}
		known = append(known, name)
	}
	return 0, fmt.Errorf("%.60q is none of %s", text, strings.Join(known, ", "))
}
