// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

type object = map[string]any

// inMemory is a catalog that needs no registry.
type inMemory string

func (inMemory) Resolve(context.Context, oci.Source) (string, error) { return "sha256:1", nil }

func (c inMemory) Open(context.Context, oci.Source, string) (catalogs.Files, error) {
	return catalogs.SingleFile("f", strings.NewReader(string(c))), nil
}

func (inMemory) Decode(_ string, decode func() error) error { return decode() }

func (inMemory) BundleObjects(context.Context, string, oci.Access) ([][]byte, error) {
	return nil, oci.ErrUnreachable
}

// echoes is a package of three versions, the fields of whose definition differ.
func echoes(t *testing.T, fields ...[]string) string {
	t.Helper()
	var out bytes.Buffer
	encode := json.NewEncoder(&out).Encode
	entries := []object{}
	var blobs []object
	for i, names := range fields {
		version := catalogtest.Version(10 * i)
		name := "echo.v" + version
		entry := object{"name": name}
		if i > 0 {
			entry["replaces"] = "echo.v" + catalogtest.Version(10*(i-1))
		}
		entries = append(entries, entry)
		properties := object{}
		for _, field := range names {
			properties[field] = object{"type": "string"}
		}
		crd := catalogtest.CRD("echo.example.com", 0)
		crd["spec"].(object)["versions"].([]any)[0].(object)["schema"] = object{"openAPIV3Schema": object{
			"type": "object", "properties": object{"spec": object{"type": "object", "properties": properties}}}}
		list := []object{{"type": "olm.package", "value": object{"packageName": "echo", "version": version}}}
		for _, o := range []object{catalogtest.CSV(name, version, "echo.example.com"), crd} {
			raw, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, object{"type": "olm.bundle.object", "value": object{"data": raw}})
		}
		blobs = append(blobs, object{"schema": "olm.bundle", "package": "echo", "name": name,
			"image": "registry.example.com/echo@sha256:" + strings.Repeat("0", 64), "properties": list})
	}
	for _, o := range append([]object{
		{"schema": "olm.package", "name": "echo", "defaultChannel": "stable"},
		{"schema": "olm.channel", "package": "echo", "name": "stable", "entries": entries},
	}, blobs...) {
		if err := encode(o); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func backTo(version string) load.Request {
	return load.Request{Digest: "sha256:1", Package: "echo", Next: "echo.v" + version,
		Back:      plan.Route{IsRollback: true}.NewRollbackBuilder(nil),
		Installed: catalogs.Installed{Name: "echo.v1.2.0", Version: "1.2.0"}, Present: []string{"echo.v1.2.0"}}
}

func TestViewOfTheWayBack(t *testing.T) {
	for name, tc := range map[string]struct {
		fields [][]string
		to     string
		class  bundles.RollbackClass
		// has is a field of the definition that is served.
		has    string
		inline bool
	}{
		"the same definition": {fields: [][]string{{"a"}, {"a"}, {"a"}}, to: "1.1.0", class: bundles.RollbackInPlace,
			has: "a"},
		"a field is new": {fields: [][]string{{"a"}, {"a"}, {"a", "b"}}, to: "1.1.0",
			class: bundles.RollbackInPlace, has: "b", inline: true},
		"a field is new since two versions": {fields: [][]string{{"a"}, {"a", "b"}, {"a", "b"}}, to: "1.0.0",
			class: bundles.RollbackInPlace, has: "b", inline: true},
		"a field is gone": {fields: [][]string{{"a"}, {"a", "b"}, {"a"}}, to: "1.1.0",
			class: bundles.RollbackNeedsBackup, has: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			l := load.New(inMemory(echoes(t, tc.fields...)), load.Options{})
			v, err := l.View(t.Context(), backTo(tc.to))
			if err != nil {
				t.Fatal(err)
			}
			next := v.Packages[0].Bundles["echo.v"+tc.to]
			if v.Rollback == nil || v.Rollback.Class != tc.class || v.Bundles[0].Route != view.Inline {
				t.Errorf("rollback %+v, route %s; want %s", v.Rollback, v.Bundles[0].Route, tc.class)
			}
			text := string(bytes.Join(next.Objects, nil))
			if !strings.Contains(text, `"`+tc.has+`":{"type":"string"}`) {
				t.Errorf("field %s is not served:\n%s", tc.has, text)
			}
			entry := v.Packages[0].Channels["stable"].Entries[0]
			if entry.Name != "echo.v"+tc.to || entry.Replaces != "echo.v1.2.0" {
				t.Errorf("entry %+v", entry)
			}
			r := backTo(tc.to)
			r.MaxInline = 10
			_, err = l.View(t.Context(), r)
			if tc.inline != errors.Is(err, view.ErrBundleTooLarge) {
				t.Errorf("too large to be inline: %v; an image must only do for the definitions that it has", err)
			}
		})
	}
}

func TestTheWayBackNeedsBothBundles(t *testing.T) {
	l := load.New(inMemory(echoes(t, []string{"a"}, []string{"a"})), load.Options{})
	if _, err := l.View(t.Context(), backTo("1.1.0")); !errors.Is(err, catalogs.ErrNoVersion) {
		t.Errorf("%v, want %v", err, catalogs.ErrNoVersion)
	}
}

// TestTheWayBackIsBounded has bundles that can be decoded one by one, and take too much memory together.
func TestTheWayBackIsBounded(t *testing.T) {
	large := func(name string) *catalogs.Bundle {
		return &catalogs.Bundle{Name: name, Objects: [][]byte{
			[]byte(`{"apiVersion":"v1","kind":"ConfigMap","x":[` + strings.Repeat(`1,`, 250_000) + "1]}")}}
	}
	untrustedtest.BoundPeak(t, 8<<20, func() {
		_, _, err := plan.Route{IsRollback: true}.NewRollbackBuilder(nil)(large("a"), large("c"),
			[]*catalogs.Bundle{large("b")})
		if !errors.Is(err, catalogs.ErrInvalidPackage) || !strings.Contains(err.Error(), `3 bundles from "c" to "a"`) {
			t.Errorf("got %v", err)
		}
	})
}
