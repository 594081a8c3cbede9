package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"
)

// value reads JSON as Python's json module does for a template: dictionaries keep the
// order of their keys, and 1 is not 1.0.
func value(b []byte) (jinja.Value, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	v, err := next(dec)
	if err != nil {
		return jinja.Undefined(), err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return jinja.Undefined(), fmt.Errorf("more than one JSON value, the second at byte %d", dec.InputOffset())
	}
	return v, nil
}

func next(dec *json.Decoder) (jinja.Value, error) {
	token, err := dec.Token()
	if err != nil {
		return jinja.Undefined(), err
	}
	switch token := token.(type) {
	case string:
		return jinja.NewString(token), nil
	case bool:
		return jinja.NewBool(token), nil
	case json.Number:
		return number(token.String())
	case nil:
		return jinja.None(), nil
	case json.Delim:
		if token == '[' {
			return list(dec)
		}
		return dict(dec)
	}
	return jinja.Undefined(), fmt.Errorf("unexpected %v", token)
}

func number(s string) (jinja.Value, error) {
	if !strings.ContainsAny(s, ".eE") {
		n, err := strconv.ParseInt(s, 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			return largeInteger(s), nil
		}
		return jinja.NewInt(n), err
	}
	f, err := strconv.ParseFloat(s, 64)
	return jinja.NewFloat(f), err
}

func list(dec *json.Decoder) (jinja.Value, error) {
	var items []jinja.Value
	for dec.More() {
		v, err := next(dec)
		if err != nil {
			return jinja.Undefined(), err
		}
		items = append(items, v)
	}
	_, err := dec.Token()
	return jinja.NewList(items), err
}

func dict(dec *json.Decoder) (jinja.Value, error) {
	v := jinja.NewDict()
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return jinja.Undefined(), err
		}
		item, err := next(dec)
		if err != nil {
			return jinja.Undefined(), err
		}
		v.AsDict().Set(key.(string), item)
	}
	_, err := dec.Token()
	return v, err
}
