// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/blang/semver/v4"
)

// Support is the value of PropertySupport.
type Support struct {
	// EndOfSupport is the last day on which the version is supported, such as 2027-06-30; empty where none is set.
	EndOfSupport string `json:"endOfSupport,omitempty"`
	// Kubernetes are the versions of Kubernetes that the version is supported on.
	Kubernetes KubernetesRange `json:"kubernetes,omitzero"`
}

// KubernetesRange is a range of versions of Kubernetes, such as 1.32; both ends are in it, with all patch releases. An
// empty end is open.
type KubernetesRange struct {
	Min string `json:"min,omitempty"`
	Max string `json:"max,omitempty"`
}

// String says the range in words; empty where both ends are open.
func (r KubernetesRange) String() string {
	switch {
	case r.Min != "" && r.Max == r.Min:
		return r.Min
	case r.Min != "" && r.Max != "":
		return r.Min + " to " + r.Max
	case r.Min != "":
		return r.Min + " or newer"
	case r.Max != "":
		return r.Max + " or older"
	}
	return ""
}

// Contains reports whether a version of Kubernetes is in the range.
func (r KubernetesRange) Contains(version string) bool {
	return (r.Min == "" || CompareKubernetes(version, r.Min) >= 0) &&
		(r.Max == "" || CompareKubernetes(version, r.Max) <= 0)
}

// ErrSupport says that a value of PropertySupport is not valid.
var ErrSupport = errors.New("invalid " + PropertySupport)

// ParseSupport decodes a value of PropertySupport. Errors wrap ErrSupport and name the field.
func ParseSupport(value []byte) (Support, error) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.DisallowUnknownFields()
	var s Support
	err := decoder.Decode(&s)
	if err == nil {
		err = s.validate()
	}
	if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("there is more than one value")
	}
	if err != nil {
		return Support{}, fmt.Errorf("%w: %w", ErrSupport, err)
	}
	return s, nil
}

var minorVersion = regexp.MustCompile(`^[1-9][0-9]{0,2}\.(0|[1-9][0-9]{0,3})$`)

func (s Support) validate() error {
	if s == (Support{}) {
		return errors.New("it says neither endOfSupport nor kubernetes")
	}
	if _, err := time.Parse(time.DateOnly, s.EndOfSupport); s.EndOfSupport != "" && err != nil {
		return fmt.Errorf("endOfSupport %q is no day such as 2027-06-30", s.EndOfSupport)
	}
	for _, end := range []struct{ field, version string }{{"min", s.Kubernetes.Min}, {"max", s.Kubernetes.Max}} {
		if end.version != "" && !minorVersion.MatchString(end.version) {
			return fmt.Errorf("kubernetes.%s %q is no version such as 1.32", end.field, end.version)
		}
	}
	if s.Kubernetes.Min != "" && s.Kubernetes.Max != "" &&
		CompareKubernetes(s.Kubernetes.Min, s.Kubernetes.Max) > 0 {
		return fmt.Errorf("kubernetes.min %s is newer than kubernetes.max %s", s.Kubernetes.Min, s.Kubernetes.Max)
	}
	return nil
}

// SupportEnded reports whether a last day of support, such as 2027-06-30, has passed, in UTC. It has not where the day
// is empty or none.
func SupportEnded(day string, now time.Time) bool {
	last, err := time.Parse(time.DateOnly, day)
	return err == nil && !now.Before(last.AddDate(0, 0, 1))
}

// CompareKubernetes orders two versions of Kubernetes by major and minor version. What is no version is the oldest.
func CompareKubernetes(a, b string) int {
	x, _ := semver.ParseTolerant(a)
	y, _ := semver.ParseTolerant(b)
	return cmp.Or(cmp.Compare(x.Major, y.Major), cmp.Compare(x.Minor, y.Minor))
}
