// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package echo_test

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/manifests"
	apivalidation "github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"

	"github.com/bellwether-dev/bellwether/testbed/echo"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
)

func TestBundlesAreCurrent(t *testing.T) {
	want := map[string]string{}
	for _, r := range bundle.Releases() {
		files, err := bundle.Files(r)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range files {
			want[r.Version+"/"+name] = string(data)
		}
	}
	got := map[string]string{}
	err := fs.WalkDir(echo.Bundles(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(echo.Bundles(), name)
		got[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bundles differ from their source; run go generate (-rendered +on disk):\n%s", diff)
	}
}

// The bundles pass the validators that operator catalogs ask authors to run.
func TestBundlesAreValid(t *testing.T) {
	for _, version := range echo.Versions() {
		t.Run(version, func(t *testing.T) {
			b, err := manifests.GetBundleFromDir("bundles/" + version)
			if err != nil {
				t.Fatal(err)
			}
			validators := append(slices.Clone(apivalidation.DefaultBundleValidators),
				apivalidation.OperatorHubV2Validator, apivalidation.StandardCapabilitiesValidator,
				apivalidation.StandardCategoriesValidator, apivalidation.GoodPracticesValidator)
			for _, result := range validators.Validate(b.ObjectsToValidate()...) {
				for _, e := range result.Errors {
					t.Errorf("%s: %s", result.Name, e.Error())
				}
				for _, w := range result.Warnings {
					t.Logf("%s: %s", result.Name, w.Error())
				}
			}
		})
	}
}

func TestFBC(t *testing.T) {
	tests := map[string]struct {
		versions []string
		want     []declcfg.ChannelEntry
		wantErr  error
	}{
		"one": {[]string{"1.0.0"}, []declcfg.ChannelEntry{{Name: "echo-operator.v1.0.0"}}, nil},
		"upgrade": {[]string{"1.1.0", "1.0.0", "1.1.0"},
			[]declcfg.ChannelEntry{{Name: "echo-operator.v1.0.0"},
				{Name: "echo-operator.v1.1.0", Replaces: "echo-operator.v1.0.0"}}, nil},
		"unknown": {[]string{"9.9.9"}, nil, echo.ErrNoVersion},
		"all, fix": {nil, []declcfg.ChannelEntry{{Name: "echo-operator.v1.0.0"},
			{Name: "echo-operator.v1.1.0", Replaces: "echo-operator.v1.0.0"},
			{Name: "echo-operator.v1.2.0", Replaces: "echo-operator.v1.1.0"},
			{Name: "echo-operator.v1.3.0", Replaces: "echo-operator.v1.1.0", Skips: []string{"echo-operator.v1.2.0"}}},
			nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			data, err := echo.FBC(tt.versions...)
			if !errors.Is(err, tt.wantErr) {
				t.Fatalf("error = %v, want %v", err, tt.wantErr)
			}
			if err != nil {
				return
			}
			cfg, err := declcfg.LoadReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, cfg.Channels[0].Entries); diff != "" {
				t.Errorf("channel entries (-want +got):\n%s", diff)
			}
			checkBundles(t, cfg)
		})
	}
}

func checkBundles(t *testing.T, cfg *declcfg.DeclarativeConfig) {
	t.Helper()
	for _, b := range cfg.Bundles {
		if b.Image != "" {
			t.Errorf("bundle %s names image %q, want none", b.Name, b.Image)
		}
		p, err := property.Parse(b.Properties)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.BundleObjects) != 3 {
			t.Errorf("bundle %s inlines %d objects, want 3", b.Name, len(p.BundleObjects))
		}
		want := []property.GVK{{Group: "echo.bellwether.dev", Version: "v1alpha1", Kind: "EchoServer"}}
		if diff := cmp.Diff(want, p.GVKs); diff != "" {
			t.Errorf("bundle %s, olm.gvk (-want +got):\n%s", b.Name, diff)
		}
	}
}

func TestFBCIsDeterministic(t *testing.T) {
	a, errA := echo.FBC("1.0.0", "1.1.0")
	b, errB := echo.FBC("1.1.0", "1.0.0")
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Error(diff)
	}
}
