// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package osv

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/package-url/packageurl-go"
)

// ErrNotCompared says that a package cannot be compared with the database. Such a package is neither affected nor
// clean.
var ErrNotCompared = errors.New("not compared")

// Target is a package as OSV names it.
type Target struct {
	// Ecosystem is one of https://ossf.github.io/osv-schema/#defined-ecosystems, with the release where it has any:
	// Go, npm, Debian:12, Red Hat:enterprise_linux:9.
	Ecosystem string
	Name      string
	Version   string
}

// Ecosystems of OSV. The others are compared by their explicit versions only.
const (
	ecosystemGo       = "Go"
	ecosystemNPM      = "npm"
	ecosystemPyPI     = "PyPI"
	ecosystemMaven    = "Maven"
	ecosystemCrates   = "crates.io"
	ecosystemRubyGems = "RubyGems"
	ecosystemNuGet    = "NuGet"
	ecosystemPackages = "Packagist"
	ecosystemHex      = "Hex"
	ecosystemPub      = "Pub"
	ecosystemDebian   = "Debian"
	ecosystemUbuntu   = "Ubuntu"
	ecosystemAlpine   = "Alpine"
	ecosystemWolfi    = "Wolfi"
	ecosystemChain    = "Chainguard"
	ecosystemRedHat   = "Red Hat"
	ecosystemRocky    = "Rocky Linux"
	ecosystemAlma     = "AlmaLinux"
)

// base is an ecosystem without the release.
func base(ecosystem string) string {
	name, _, _ := strings.Cut(ecosystem, ":")
	return name
}

// covers reports whether what a record says of one ecosystem is about the target: the same one, any subdivision of its
// release, or all releases.
func (t Target) covers(ecosystem string) bool {
	return ecosystem == t.Ecosystem || ecosystem == base(t.Ecosystem) || strings.HasPrefix(ecosystem, t.Ecosystem+":")
}

// TargetOf translates a package URL. Errors wrap ErrNotCompared and say why the package cannot be compared.
func TargetOf(purl string) (Target, error) {
	if purl == "" {
		return Target{}, fmt.Errorf("%w: the SBOM has no package URL", ErrNotCompared)
	}
	p, err := packageurl.FromString(purl)
	if err != nil {
		return Target{}, fmt.Errorf("%w: invalid package URL: %w", ErrNotCompared, err)
	}
	t, err := translate(p)
	if err != nil {
		return Target{}, err
	}
	if t.Version == "" || t.Version == "UNKNOWN" || t.Version == "(devel)" {
		return Target{}, fmt.Errorf("%w: the SBOM has no version", ErrNotCompared)
	}
	return t, nil
}

// joined are the ecosystems whose packages are named by namespace and name, with what is between them.
var joined = map[string]struct{ ecosystem, separator string }{
	packageurl.TypeGolang:   {ecosystemGo, "/"},
	packageurl.TypeNPM:      {ecosystemNPM, "/"},
	packageurl.TypePyPi:     {ecosystemPyPI, ""},
	packageurl.TypeMaven:    {ecosystemMaven, ":"},
	packageurl.TypeCargo:    {ecosystemCrates, ""},
	packageurl.TypeGem:      {ecosystemRubyGems, ""},
	packageurl.TypeNuget:    {ecosystemNuGet, ""},
	packageurl.TypeComposer: {ecosystemPackages, "/"},
	packageurl.TypeHex:      {ecosystemHex, "/"},
	packageurl.TypePub:      {ecosystemPub, ""},
}

func translate(p packageurl.PackageURL) (Target, error) {
	switch p.Type {
	case packageurl.TypeDebian:
		return debian(p)
	case packageurl.TypeApk:
		return alpine(p)
	case packageurl.TypeRPM:
		return rpm(p)
	}
	known, ok := joined[p.Type]
	if !ok {
		return Target{}, fmt.Errorf("%w: packages of type %q are not known", ErrNotCompared, p.Type)
	}
	t := Target{Ecosystem: known.ecosystem, Name: p.Name, Version: p.Version}
	if p.Namespace != "" {
		t.Name = p.Namespace + known.separator + p.Name
	}
	switch p.Type {
	case packageurl.TypeGolang:
		t.Version = strings.TrimPrefix(t.Version, "v")
		if t.Name == "stdlib" {
			t.Version = strings.TrimPrefix(t.Version, "go")
		}
	case packageurl.TypePyPi:
		t.Name = strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(t.Name))
	}
	return t, nil
}

// source is the source package that a binary one was built from, by which OSV lists most distributions.
func source(qualifiers map[string]string, name, version string) (string, string) {
	text := cmp.Or(qualifiers["upstream"], qualifiers["source"])
	if text == "" {
		return name, version
	}
	source, ofSource, ok := strings.Cut(text, "@")
	if !ok {
		ofSource = version
	}
	return source, ofSource
}

func debian(p packageurl.PackageURL) (Target, error) {
	q := p.Qualifiers.Map()
	t := Target{}
	t.Name, t.Version = source(q, p.Name, p.Version)
	release := strings.TrimPrefix(q["distro"], p.Namespace+"-")
	switch p.Namespace {
	case "debian":
		release, _, _ = strings.Cut(release, ".")
		t.Ecosystem = ecosystemDebian + ":" + release
	case "ubuntu":
		t.Ecosystem = ecosystemUbuntu + ":" + release
	default:
		return Target{}, fmt.Errorf("%w: packages of distribution %q are not known", ErrNotCompared, p.Namespace)
	}
	return t, checkRelease(p, release)
}

// checkRelease wants a number: code names such as bookworm are not translated.
func checkRelease(p packageurl.PackageURL, release string) error {
	if release == "" || release[0] < '0' || release[0] > '9' {
		return fmt.Errorf("%w: the package URL does not say the release of %s", ErrNotCompared, p.Namespace)
	}
	return nil
}

func alpine(p packageurl.PackageURL) (Target, error) {
	q := p.Qualifiers.Map()
	t := Target{}
	t.Name, t.Version = source(q, p.Name, p.Version)
	switch p.Namespace {
	case "wolfi":
		t.Ecosystem = ecosystemWolfi
	case "chainguard":
		t.Ecosystem = ecosystemChain
	case "alpine":
		release := strings.TrimPrefix(strings.TrimPrefix(q["distro"], "alpine-"), "v")
		if err := checkRelease(p, release); err != nil {
			return Target{}, err
		}
		numbers := strings.SplitN(release, ".", 3)
		t.Ecosystem = ecosystemAlpine + ":v" + strings.Join(numbers[:min(2, len(numbers))], ".")
	default:
		return Target{}, fmt.Errorf("%w: packages of distribution %q are not known", ErrNotCompared, p.Namespace)
	}
	return t, nil
}

// rpm keeps the name of the binary package, by which OSV lists these distributions.
func rpm(p packageurl.PackageURL) (Target, error) {
	q := p.Qualifiers.Map()
	t := Target{Name: p.Name, Version: p.Version}
	if epoch := q["epoch"]; epoch != "" && !strings.Contains(t.Version, ":") {
		t.Version = epoch + ":" + t.Version
	}
	release := q["distro"]
	if i := strings.LastIndex(release, "-"); i >= 0 {
		release = release[i+1:]
	}
	release, _, _ = strings.Cut(release, ".")
	switch p.Namespace {
	case "redhat", "rhel":
		t.Ecosystem = ecosystemRedHat + ":enterprise_linux:" + release
	case "rocky", "rockylinux", "rocky-linux":
		t.Ecosystem = ecosystemRocky + ":" + release
	case "almalinux", "alma":
		t.Ecosystem = ecosystemAlma + ":" + release
	default:
		return Target{}, fmt.Errorf("%w: packages of distribution %q are not known", ErrNotCompared, p.Namespace)
	}
	return t, checkRelease(p, release)
}
