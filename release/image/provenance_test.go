// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/release/image"
)

func TestPredicate(t *testing.T) {
	commit := strings.Repeat("a", 40)
	got, err := image.Build{Version: "1.2.3", Registry: "registry.example.com/bellwether",
		Platforms: []string{"linux/amd64"}, Commit: commit, Go: "go1.26.8"}.Predicate()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"buildDefinition": map[string]any{
			"buildType": image.BuildType,
			"externalParameters": map[string]any{"version": "1.2.3", "registry": "registry.example.com/bellwether",
				"base": "", "platforms": []any{"linux/amd64"}},
			"internalParameters": map[string]any{"go": "go1.26.8"},
			"resolvedDependencies": []any{map[string]any{"uri": "git+https://github.com/bellwether-dev/bellwether",
				"digest": map[string]any{"gitCommit": commit}}},
		},
		"runDetails": map[string]any{"builder": map[string]any{"id": image.Local}},
	}
	if diff := cmp.Diff(want, got.AsMap()); diff != "" {
		t.Errorf("predicate (-want +got):\n%s", diff)
	}
}

func TestBuilderOf(t *testing.T) {
	env := map[string]string{"GITHUB_SERVER_URL": "https://github.com",
		"GITHUB_WORKFLOW_REF": "bellwether-dev/bellwether/.github/workflows/release.yaml@refs/tags/v1.2.3"}
	getenv := func(name string) string { return env[name] }
	if got := image.ReadBuilder(getenv); got != "" {
		t.Errorf("elsewhere: %s", got)
	}
	env["GITHUB_ACTIONS"] = "true"
	const want = "https://github.com/bellwether-dev/bellwether/.github/workflows/release.yaml@refs/tags/v1.2.3"
	if got := image.ReadBuilder(getenv); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
