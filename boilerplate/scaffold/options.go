// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes a new operator: an API, a controller, its tests, and what makes a bundle of it. It writes
// with kubebuilder's scaffolding library, and subscribes the new repository to the conventions of this program. Its
// input are options, and perhaps Go types that exist already. The same input gives the same files. It runs nothing of
// what it writes.
package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/kubebuilder/v4/pkg/model/resource"
	"sigs.k8s.io/yaml"
)

// ErrOptions says that an option is not written as it must be.
var ErrOptions = errors.New("invalid option")

// Options describe the operator. All but Name may be empty.
type Options struct {
	// Name is that of its package in catalogs, of its Deployment and of its ServiceAccount: a DNS label.
	Name    string
	Module  string // the path of its Go module; example.com/NAME by default
	Group   string // of its API; NAME.example.com by default
	Version string // v1alpha1 by default
	Kind    string // made of the name by default
	Plural  string // made of the kind by default
	Cluster bool   // the kind has no namespace
	Webhook bool   // adds a validating webhook
	Image   string // the repository of its image, which need not exist; Module, in small letters, by default
	Team    string // approves changes and supports the operator: a user or a team (org/team) of GitHub
	// Types exist already. Their group, version, kind and scope take the place of those above. Nil makes new ones.
	Types *Types
	// Example is an object of the kind, in YAML. Default: one that suits new types, or one with an empty spec.
	Example string
}

// complete fills in defaults and refuses what cannot work. Errors wrap ErrOptions.
func (o Options) complete() (Options, error) {
	const longestName = 40 // names of other objects are made of it
	if len(validation.IsDNS1035Label(o.Name)) > 0 || len(o.Name) > longestName {
		return o, fmt.Errorf("%w: name %q is not one of at most %d small letters, digits and dashes, such as "+
			"snack-operator", ErrOptions, o.Name, longestName)
	}
	o.Module = cmp.Or(o.Module, "example.com/"+o.Name)
	o.Image = cmp.Or(o.Image, strings.ToLower(o.Module))
	o.Team = cmp.Or(o.Team, "maintainers")
	if t := o.Types; t != nil {
		o.Group, o.Version, o.Kind, o.Cluster = t.Group, t.Version, t.Kind, t.Cluster
		o.Plural = cmp.Or(o.Plural, t.Plural)
	}
	o.Group = cmp.Or(o.Group, strings.TrimSuffix(o.Name, "-operator")+".example.com")
	o.Version = cmp.Or(o.Version, "v1alpha1")
	o.Kind = cmp.Or(o.Kind, titled(strings.TrimSuffix(o.Name, "-operator"), ""))
	o.Plural = cmp.Or(o.Plural, resource.RegularPlural(o.Kind))
	return o, o.check()
}

// titled makes snack-machine a SnackMachine, or a Snack Machine, by the separator.
func titled(name, separator string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' })
	for i, part := range parts {
		parts[i] = strings.ToUpper(part[:1]) + part[1:]
	}
	return strings.Join(parts, separator)
}

var (
	kindForm  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,39}$`)
	imageForm = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$`)
	teamForm  = regexp.MustCompile(`^[A-Za-z0-9-]+(/[A-Za-z0-9._-]+)?$`)
)

func (o Options) check() error {
	switch {
	case module.CheckPath(o.Module) != nil:
		return fmt.Errorf("%w: module %q is no path of a Go module, such as example.com/%s", ErrOptions, o.Module,
			o.Name)
	case !kindForm.MatchString(o.Kind):
		return fmt.Errorf("%w: kind %q does not begin with a capital letter, or has more than 40 letters and digits",
			ErrOptions, o.Kind)
	case len(validation.IsDNS1035Label(o.Plural)) > 0:
		return fmt.Errorf("%w: plural %q is not one of small letters, digits and dashes", ErrOptions, o.Plural)
	case len(validation.IsDNS1123Subdomain(o.Group)) > 0 || !strings.Contains(o.Group, "."):
		return fmt.Errorf("%w: API group %q is no domain name, such as apps.example.com", ErrOptions, o.Group)
	case !regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`).MatchString(o.Version):
		return fmt.Errorf("%w: API version %q is not one such as v1alpha1, v1beta1 or v1", ErrOptions, o.Version)
	case !imageForm.MatchString(o.Image):
		return fmt.Errorf("%w: image %q is not the repository of an image, without a tag, such as "+
			"registry.example.com/%s", ErrOptions, o.Image, o.Name)
	case !teamForm.MatchString(o.Team):
		return fmt.Errorf("%w: team %q is no user or team (org/team) of GitHub", ErrOptions, o.Team)
	}
	if err := o.resource().Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	var example struct{ APIVersion, Kind string }
	err := yaml.Unmarshal([]byte(o.Example), &example)
	if want := o.Group + "/" + o.Version; o.Example != "" &&
		(err != nil || example.APIVersion != want || example.Kind != o.Kind) {
		return fmt.Errorf("%w: the example is not an object of kind %s of %s", ErrOptions, o.Kind, want)
	}
	return nil
}

// resource describes the API as kubebuilder does, in the file PROJECT.
func (o Options) resource() resource.Resource {
	group, domain, _ := strings.Cut(o.Group, ".")
	r := resource.Resource{
		GVK:    resource.GVK{Group: group, Domain: domain, Version: o.Version, Kind: o.Kind},
		Plural: o.Plural, Path: path.Join(o.Module, "api", o.Version), Controller: true,
	}
	if o.Types != nil && o.Types.Import != "" {
		r.Path, r.External = o.Types.Import, true
		r.Module = o.Types.Module + "@" + o.Types.ModuleVersion
	} else {
		r.API = &resource.API{CRDVersion: "v1", Namespaced: !o.Cluster}
	}
	if o.Webhook {
		r.Webhooks = &resource.Webhooks{WebhookVersion: "v1", Validation: true}
	}
	return r
}
