// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

// By these Helm knows which release an object belongs to. It refuses to write the objects of others.
const (
	managedByLabel      = "app.kubernetes.io/managed-by"
	managedByHelm       = "Helm"
	ownerAnnotation     = "meta.helm.sh/release-name"
	namespaceAnnotation = "meta.helm.sh/release-namespace"
)

// InstallsCRDs tells whether the chart's CRDs are part of the release, with the given values and those that the release
// keeps of earlier times.
func (r Release) InstallsCRDs(given map[string]any) (bool, error) {
	c, err := r.configuration()
	if err != nil {
		return false, err
	}
	there, err := r.exists(c)
	if err != nil {
		return false, err
	}
	values := []map[string]any{given}
	if there {
		last, err := c.Releases.Last(r.Name)
		if err != nil {
			return false, fmt.Errorf("read release %s: %w", r.Name, err)
		}
		values = append(values, last.Config)
	}
	for _, v := range values {
		if enabled, err := chartutil.Values(v).PathValue("crds.enabled"); err == nil {
			return enabled == true, nil
		}
	}
	return true, nil
}

// OwnerOfCRD returns the release that a CRD belongs to; the zero value where it belongs to none, or does not exist.
func OwnerOfCRD(ctx context.Context, c client.Reader, name string) (types.NamespacedName, error) {
	crd, err := getCRD(ctx, c, name)
	if err != nil || crd == nil {
		return types.NamespacedName{}, err
	}
	return ownerOf(crd), nil
}

func ownerOf(crd *unstructured.Unstructured) types.NamespacedName {
	if crd.GetLabels()[managedByLabel] != managedByHelm {
		return types.NamespacedName{}
	}
	of := crd.GetAnnotations()
	return types.NamespacedName{Namespace: of[namespaceAnnotation], Name: of[ownerAnnotation]}
}

// TakeCRDs makes existing CRDs part of the release: those that an earlier chart left in its folder crds, that somebody
// applied, or that belong to another release. Helm then upgrades them with the release. They are marked to be kept, so
// that the release which had them before does not delete them.
func (r Release) TakeCRDs(ctx context.Context, c client.Client, names ...string) error {
	for _, name := range names {
		crd, err := getCRD(ctx, c, name)
		if err != nil {
			return err
		}
		if crd == nil || ownerOf(crd) == (types.NamespacedName{Namespace: r.Namespace, Name: r.Name}) {
			continue
		}
		before := crd.DeepCopy()
		set(crd.GetLabels(), crd.SetLabels, map[string]string{managedByLabel: managedByHelm})
		set(crd.GetAnnotations(), crd.SetAnnotations, map[string]string{ownerAnnotation: r.Name,
			namespaceAnnotation: r.Namespace, kube.ResourcePolicyAnno: kube.KeepPolicy})
		// Not by server-side apply, which would take away the fields that an earlier version of this program applied.
		if err := c.Patch(ctx, crd, client.MergeFrom(before), hub.FieldOwner); err != nil {
			return fmt.Errorf("make CRD %s part of release %s: %w", name, r.Name, err)
		}
	}
	return nil
}

func set(have map[string]string, to func(map[string]string), want map[string]string) {
	if have == nil {
		have = map[string]string{}
	}
	for key, value := range want {
		have[key] = value
	}
	to(have)
}

// getCRD returns a CRD, or nil where it does not exist.
func getCRD(ctx context.Context, c client.Reader, name string) (*unstructured.Unstructured, error) {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	err := c.Get(ctx, client.ObjectKey{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it does not exist
	}
	if err != nil {
		return nil, fmt.Errorf("get CRD %s: %w", name, err)
	}
	return crd, nil
}

// errMissing says that a CRD is not there.
var errMissing = errors.New("the CRD does not exist")

// WaitForCRDs waits until the API server serves the CRDs.
func WaitForCRDs(ctx context.Context, c client.Reader, timeout time.Duration, names ...string) error {
	for _, name := range names {
		err := hub.Poll(ctx, timeout, func() (bool, error) {
			crd, err := getCRD(ctx, c, name)
			if err == nil && crd == nil {
				err = errMissing
			}
			return err == nil && established(crd), err
		})
		if err != nil {
			return fmt.Errorf("wait for CRD %s: %w", name, err)
		}
	}
	return nil
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			return true
		}
	}
	return false
}
