// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"strings"

	"deps.dev/util/semver"
	apkversion "github.com/knqyf263/go-apk-version"
	debversion "github.com/knqyf263/go-deb-version"
	rpmversion "github.com/knqyf263/go-rpm-version"
)

// comparator orders two versions by the rules of an ecosystem.
type comparator func(a, b string) (int, error)

// comparators by ecosystem, without its release.
var comparators = map[string]comparator{
	ecosystemGo:       compareGo,
	ecosystemNPM:      newComparator(semver.NPM),
	ecosystemPyPI:     newComparator(semver.PyPI),
	ecosystemMaven:    newComparator(semver.Maven),
	ecosystemCrates:   newComparator(semver.Cargo),
	ecosystemRubyGems: newComparator(semver.RubyGems),
	ecosystemNuGet:    newComparator(semver.NuGet),
	ecosystemPackages: newComparator(semver.Composer),
	ecosystemHex:      newComparator(semver.DefaultSystem),
	ecosystemPub:      newComparator(semver.DefaultSystem),
	ecosystemDebian:   compareDebian,
	ecosystemUbuntu:   compareDebian,
	ecosystemAlpine:   compareAlpine,
	ecosystemWolfi:    compareAlpine,
	ecosystemChain:    compareAlpine,
	ecosystemRedHat:   compareRPM,
	ecosystemRocky:    compareRPM,
	ecosystemAlma:     compareRPM,
}

// newComparator returns a comparator by the rules of a packaging system.
func newComparator(system semver.System) comparator {
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

// compareGo also accepts versions without the v, as OSV writes them.
func compareGo(a, b string) (int, error) {
	return newComparator(semver.Go)("v"+strings.TrimPrefix(a, "v"), "v"+strings.TrimPrefix(b, "v"))
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

// compareRPM returns no error, because RPM can compare any texts.
func compareRPM(a, b string) (int, error) {
	return rpmversion.NewVersion(a).Compare(rpmversion.NewVersion(b)), nil
}
