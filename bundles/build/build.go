// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/bundles"
)

// ErrInput means that no bundle can be built from the input; the error lists all problems.
var ErrInput = errors.New("no bundle can be made of this")

// InputError lists the problems of the input. It matches ErrInput.
type InputError struct {
	// Problems are sentences that name the object or the option, and the solution.
	Problems []string
}

func (e *InputError) Error() string {
	if len(e.Problems) == 1 {
		return fmt.Sprintf("%v: %s", ErrInput, e.Problems[0])
	}
	return fmt.Sprintf("%v: %d problems:\n  - %s", ErrInput, len(e.Problems), strings.Join(e.Problems, "\n  - "))
}

// Is makes errors.Is(err, ErrInput) return true.
func (e *InputError) Is(target error) bool { return target == ErrInput }

// Source is a stream of YAML or JSON documents. Name is its name in errors, such as "stdin" or a file name.
type Source struct {
	Name string
	Text []byte
	// Where is the place that errors name for all documents. Set it if another program generated the text, because its
	// line numbers do not exist in a file of the user. If it is empty, errors name Name and the line.
	Where string
}

// Options contain the data that manifests do not have. Package is required. Version is required unless a
// ClusterServiceVersion among the manifests has it.
type Options struct {
	// Package is the name of the operator in catalogs.
	Package string
	// Version has the form X.Y.Z. Pre-releases and build metadata are refused: version ranges do not match
	// pre-releases, and OLM v1 orders versions by build metadata.
	Version string
	// Channels are the channels that the bundle proposes; empty means "stable". The compiled catalog decides.
	Channels []string
	// DefaultChannel is one of Channels; empty means the first.
	DefaultChannel string
	// About describes the operator for people. Fields that are set override the ClusterServiceVersion among
	// the manifests.
	About About
	// LeaveOut are objects that can be left out: KIND or KIND/NAME, in any letter case.
	LeaveOut []string
	// ServiceAccounts are accounts that no Deployment uses, but that get their permissions through OLM.
	ServiceAccounts []string
	// Annotations are added to metadata/annotations.yaml.
	Annotations map[string]string
	// Described are descriptions of kinds, by Kind and Version, as ReadMarkers returns them. They override a
	// ClusterServiceVersion among the manifests.
	Described []operatorsv1alpha1.CRDDescription
	// Metadata are further files of metadata/, by file name: properties.yaml and dependencies.yaml.
	Metadata map[string][]byte
}

// About describes the operator for people and declares where it can be installed. All fields are optional.
type About struct {
	DisplayName, Description string
	Provider, ProviderURL    string
	Maturity, MinKubeVersion string
	Capabilities             string
	Keywords                 []string
	Maintainers              []operatorsv1alpha1.Maintainer
	Links                    []operatorsv1alpha1.AppLink
	Icon                     *operatorsv1alpha1.Icon
	InstallModes             []operatorsv1alpha1.InstallModeType
	Replaces                 string
}

// fillDefaults returns a with its empty fields set from b.
func (a About) fillDefaults(b About) About {
	a.DisplayName, a.Description = cmp.Or(a.DisplayName, b.DisplayName), cmp.Or(a.Description, b.Description)
	a.Provider, a.ProviderURL = cmp.Or(a.Provider, b.Provider), cmp.Or(a.ProviderURL, b.ProviderURL)
	a.Maturity, a.MinKubeVersion = cmp.Or(a.Maturity, b.Maturity), cmp.Or(a.MinKubeVersion, b.MinKubeVersion)
	a.Capabilities, a.Replaces, a.Icon = cmp.Or(a.Capabilities, b.Capabilities), cmp.Or(a.Replaces, b.Replaces),
		cmp.Or(a.Icon, b.Icon)
	a.Keywords, a.Maintainers = chooseNonEmpty(a.Keywords, b.Keywords), chooseNonEmpty(a.Maintainers, b.Maintainers)
	a.Links, a.InstallModes = chooseNonEmpty(a.Links, b.Links), chooseNonEmpty(a.InstallModes, b.InstallModes)
	return a
}

// chooseNonEmpty returns a, or b if a is empty.
func chooseNonEmpty[T any](a, b []T) []T {
	if len(a) > 0 {
		return a
	}
	return b
}

// FillDefaults returns o with its empty fields set from defaults, which usually come from the metadata of a chart.
func (o Options) FillDefaults(defaults Options) Options {
	o.Package, o.Version = cmp.Or(o.Package, defaults.Package), cmp.Or(o.Version, defaults.Version)
	o.About = o.About.fillDefaults(defaults.About)
	return o
}

// Result is a bundle, together with information for its author.
type Result struct {
	Name, Package, Version string
	// Files are the files of the bundle, by their path in it.
	Files Files
	// Placements is the result for every object of the input; nil if the input was already a bundle.
	Placements []Placement
	// Warnings are sentences about objects that were left out or changed, and about missing objects and kinds.
	Warnings []string
}

// Assemble builds a bundle from manifests and validates it. Errors in the input match ErrInput. The result is nil if no
// bundle can be built; otherwise it is also returned together with the errors of the finished bundle.
func Assemble(sources []Source, o Options) (*Result, error) {
	a := &assembler{options: o, placements: map[*unstructured.Unstructured]string{},
		webhookDeployments: map[string]string{}}
	a.completeOptions()
	objects := a.parseSources(sources)
	a.sortObjects(objects)
	if len(a.problems) == 0 {
		a.buildCSV()
	}
	var placements []Placement
	if len(a.problems) == 0 { // buildCSV can add problems
		placements = a.listPlacements(objects)
	}
	if len(a.problems) > 0 {
		return nil, &InputError{a.problems}
	}
	files, err := a.encodeFiles()
	if err != nil {
		return nil, err
	}
	r := &Result{Name: a.csv.Name, Package: o.Package, Version: a.csv.Spec.Version.String(), Files: files,
		Placements: placements, Warnings: a.warnings}
	b, err := r.Files.Bundle()
	if err != nil {
		return r, newInputError("%v", err)
	}
	r.Warnings = append(r.Warnings, formatUndefinedKinds(b)...)
	r.Warnings = append(r.Warnings, a.formatMissingObjects(b)...)
	return r, r.validateBundle(b)
}

// formatUndefinedKinds returns one warning about all kinds that the operator needs and that the bundle does not define;
// nil if there are none.
func formatUndefinedKinds(b *bundles.Bundle) []string {
	var needed []string
	for _, u := range b.UndefinedResources() {
		needed = append(needed, fmt.Sprintf("%s (%s)", u.Name, u.NeededBy))
	}
	if len(needed) == 0 {
		return nil
	}
	return []string{"no CustomResourceDefinition among the manifests defines " + strings.Join(needed, ", ") +
		". Add what is missing, or list it as required in a ClusterServiceVersion (--csv), unless the operator works " +
		"without it"}
}

// formatMissingObjects returns a warning for each ConfigMap or Secret without which Pods do not start, unless
// --leave-out names it.
func (a *assembler) formatMissingObjects(b *bundles.Bundle) []string {
	var out []string
	for _, m := range b.MissingObjects() {
		if a.canLoseNamed(m.Kind, m.Name) {
			continue
		}
		out = append(out, fmt.Sprintf("Deployment %s needs %s %s in %s, which the bundle does not have: its Pods do "+
			"not start until somebody makes it. Add it, set optional: true, or use --leave-out %s/%s if it is made "+
			"before the operator is installed", m.Deployment, m.Kind, m.Name, bundles.FieldPath(m.Path...), m.Kind,
			m.Name))
	}
	return out
}

// assembler builds a bundle. It collects all problems and warnings of the input.
type assembler struct {
	options            Options
	problems, warnings []string

	bases       []typedObject[operatorsv1alpha1.ClusterServiceVersion]
	objects     sortedObjects
	csv         *operatorsv1alpha1.ClusterServiceVersion
	permissions permissions
	// placements are the results for the objects of the input.
	placements map[*unstructured.Unstructured]string
	// namespace is the namespace of the Deployments; objects of the bundle have no namespace. impliedNamespace is true
	// if the Deployments name no namespace, so that it was derived from other objects.
	namespace        string
	impliedNamespace bool
	// webhookDeployments are the Deployments behind the Services of webhooks, by the name of the Service.
	webhookDeployments map[string]string
}

// addProblem adds a problem, which prevents the bundle.
func (a *assembler) addProblem(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// warn adds a warning.
func (a *assembler) warn(format string, args ...any) {
	a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
}

// buildCSV builds the ClusterServiceVersion. The order of the steps matters, because steps use earlier results.
func (a *assembler) buildCSV() {
	if a.startCSV(); a.csv == nil {
		return
	}
	a.setNamespace()
	a.grantPermissions()
	a.setInstallStrategy()
	a.setOwnedCRDs()
	a.refuseNeededExamples()
	a.setExamples()
	a.setWebhooks()
	a.setDescription()
	a.setRelatedImages()
}

var packageNamePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// completeOptions sets the defaults of the options and reports invalid options.
func (a *assembler) completeOptions() {
	o := &a.options
	switch {
	case o.Package == "":
		a.addProblem("the package is not known: give --package NAME")
	case !packageNamePattern.MatchString(o.Package):
		a.addProblem("package %q is not written in small letters, digits, dots and dashes, at most 63 of them",
			o.Package)
	}
	if len(o.Channels) == 0 {
		o.Channels = []string{"stable"}
	}
	for _, c := range o.Channels {
		if !packageNamePattern.MatchString(c) {
			a.addProblem("channel %q is not written in small letters, digits, dots and dashes", c)
		}
	}
	o.DefaultChannel = cmp.Or(o.DefaultChannel, o.Channels[0])
	if !slices.Contains(o.Channels, o.DefaultChannel) {
		a.addProblem("the default channel %q is none of the channels %s", o.DefaultChannel,
			strings.Join(o.Channels, ", "))
	}
	for name := range o.Metadata {
		if name != "properties.yaml" && name != "dependencies.yaml" {
			a.addProblem("metadata/%s is not read by anything: only properties.yaml and dependencies.yaml are", name)
		}
	}
	for key := range o.Annotations {
		if strings.HasPrefix(key, "operators.operatorframework.io.bundle.") {
			a.addProblem("annotation %s follows from the other options and cannot be set", key)
		}
	}
}

// PlainVersion parses a version X.Y.Z. It returns an error for pre-releases and build metadata.
func PlainVersion(text string) (semver.Version, error) {
	v, err := semver.Parse(text)
	switch {
	case err != nil:
		// The error of the library, such as "No Major.Minor.Patch elements found", is not more helpful.
		return v, fmt.Errorf("version %q is not X.Y.Z, three numbers such as 1.4.0", text)
	case len(v.Pre) > 0:
		return v, fmt.Errorf("version %q is a pre-release: version ranges do not see it; use X.Y.Z and a candidate "+
			"channel", text)
	case len(v.Build) > 0:
		return v, fmt.Errorf("version %q has build metadata, by which OLM v1 orders: put it into an annotation", text)
	}
	return v, nil
}

// listAnnotations returns the annotations of metadata/annotations.yaml.
func (a *assembler) listAnnotations() map[string]string {
	out := map[string]string{
		bundles.AnnotationMediaType:      bundles.MediaType,
		bundles.AnnotationManifests:      bundles.ManifestsDir + "/",
		bundles.AnnotationMetadata:       bundles.MetadataDir + "/",
		bundles.AnnotationPackage:        a.options.Package,
		bundles.AnnotationChannels:       strings.Join(a.options.Channels, ","),
		bundles.AnnotationDefaultChannel: a.options.DefaultChannel,
	}
	for key, value := range a.options.Annotations {
		out[key] = value
	}
	if len(a.objects.scorecard) > 0 {
		out["operators.operatorframework.io.test.mediatype.v1"] = "scorecard+v1"
		out["operators.operatorframework.io.test.config.v1"] = "tests/scorecard/"
	}
	return out
}
