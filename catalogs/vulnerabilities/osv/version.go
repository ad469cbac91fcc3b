// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package osv

import (
	"fmt"
	"strings"

	"deps.dev/util/semver"
	apkversion "github.com/knqyf263/go-apk-version"
	debversion "github.com/knqyf263/go-deb-version"
	rpmversion "github.com/knqyf263/go-rpm-version"
)

// comparator orders two versions as their ecosystem does.
type comparator func(a, b string) (int, error)

// comparators by ecosystem, without its release.
var comparators = map[string]comparator{
	ecosystemGo:       compareGo,
	ecosystemNPM:      bySystem(semver.NPM),
	ecosystemPyPI:     bySystem(semver.PyPI),
	ecosystemMaven:    bySystem(semver.Maven),
	ecosystemCrates:   bySystem(semver.Cargo),
	ecosystemRubyGems: bySystem(semver.RubyGems),
	ecosystemNuGet:    bySystem(semver.NuGet),
	ecosystemPackages: bySystem(semver.Composer),
	ecosystemHex:      bySystem(semver.DefaultSystem),
	ecosystemPub:      bySystem(semver.DefaultSystem),
	ecosystemDebian:   compareDebian,
	ecosystemUbuntu:   compareDebian,
	ecosystemAlpine:   compareAlpine,
	ecosystemWolfi:    compareAlpine,
	ecosystemChain:    compareAlpine,
	ecosystemRedHat:   compareRPM,
	ecosystemRocky:    compareRPM,
	ecosystemAlma:     compareRPM,
}

func bySystem(system semver.System) comparator {
	return func(a, b string) (int, error) {
		first, err := system.Parse(a)
		if err != nil {
			return 0, fmt.Errorf("version %q: %w", a, err)
		}
		second, err := system.Parse(b)
		if err != nil {
			return 0, fmt.Errorf("version %q: %w", b, err)
		}
		return first.Compare(second), nil
	}
}

// compareGo takes versions without the v, as OSV writes them.
func compareGo(a, b string) (int, error) {
	return bySystem(semver.Go)("v"+strings.TrimPrefix(a, "v"), "v"+strings.TrimPrefix(b, "v"))
}

func compareDebian(a, b string) (int, error) {
	first, err := debversion.NewVersion(a)
	if err != nil {
		return 0, fmt.Errorf("version %q: %w", a, err)
	}
	second, err := debversion.NewVersion(b)
	if err != nil {
		return 0, fmt.Errorf("version %q: %w", b, err)
	}
	return first.Compare(second), nil
}

func compareAlpine(a, b string) (int, error) {
	first, err := apkversion.NewVersion(a)
	if err != nil {
		return 0, fmt.Errorf("version %q: %w", a, err)
	}
	second, err := apkversion.NewVersion(b)
	if err != nil {
		return 0, fmt.Errorf("version %q: %w", b, err)
	}
	return first.Compare(second), nil
}

// compareRPM has no invalid versions: RPM compares any texts.
func compareRPM(a, b string) (int, error) {
	return rpmversion.NewVersion(a).Compare(rpmversion.NewVersion(b)), nil
}
