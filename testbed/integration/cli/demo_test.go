// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/release/image"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestDemo shows the product on a cluster that it did not make, with images that come from a registry, and removes
// everything again. The kubelet is the testbed's: that a container runtime pulls and runs the images is not shown.
func TestDemo(t *testing.T) {
	registry := serveRegistry(t) + "/bellwether"
	tag, images := publishAll(t, registry)
	c := testenv.Cluster(t, cluster.Options{OLM: true, Pods: true, Images: images})
	h := connect(t, c)
	before := h.outsideOfNamespaces(t)
	demo := func(more ...string) result {
		return h.run(t, append([]string{"demo", "--yes", "--registry", registry, "--image-tag", tag}, more...)...)
	}
	unchanged := func(what string) {
		t.Helper()
		if diff := cmp.Diff(before, h.outsideOfNamespaces(t)); diff != "" {
			t.Errorf("%s did not leave the cluster as it was; before (-), after (+):\n%s", what, diff)
		}
	}

	if got := demo("--dry-run"); got.code != 0 || !strings.Contains(got.out, "$ bellwether install hub ") {
		t.Errorf("a dry run ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	if got := demo("--image-tag", "none"); got.code != 1 || !strings.Contains(got.err, "3 problems") ||
		!strings.Contains(got.err, "image "+registry+"/agent:none cannot be read") {
		t.Errorf("without images it ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	if got := h.run(t, "demo", "--remove", "--yes"); got.code != 1 || !strings.Contains(got.err, "there is no demo") {
		t.Errorf("without a demo, its removal ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	unchanged("what was refused")

	// There is no DNS on the testbed, and all pods share one host.
	install := []string{"--hub-server", c.URL(), "--set", "hub.bindAddress=$(POD_IP)", "--set",
		"agent.bindAddress=$(POD_IP)", "--set", "agent.viewHost=$(POD_IP)"}
	got := demo(install...)
	if got.code != 0 || !strings.Contains(got.out, "bellwether demo --remove") {
		t.Fatalf("it ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	t.Log(got.out)
	csv := &unstructured.Unstructured{}
	csv.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	key := client.ObjectKey{Namespace: "bellwether-sample", Name: "bellwether-sample.v1.1.0"}
	must(t, h.Get(t.Context(), key, csv))
	if phase, _, _ := unstructured.NestedString(csv.Object, "status", "phase"); phase != "Succeeded" {
		t.Errorf("OLM has the sample operator in phase %q", phase)
	}

	if got := h.run(t, "demo", "--remove", "--yes"); got.code != 0 {
		t.Fatalf("the removal ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	unchanged("the demo")
}

// publishAll pushes the images of all programs, and pulls and unpacks them again. It returns their tag, and the
// programs
// by the names of the images.
func publishAll(t *testing.T, registry string) (string, map[string]cluster.Image) {
	t.Helper()
	target := image.Target{Client: oci.NewClient(oci.Options{}), Registry: registry}
	tag, images := "", map[string]cluster.Image{}
	for _, name := range image.Names {
		program, err := image.ReadProgram(name, testenv.Binary(t, name), "")
		must(t, err)
		set, err := image.NewSet([]image.Program{program},
			func(v1.Platform) (v1.Image, error) { return image.DefaultBase() })
		must(t, err)
		published, err := target.Publish(t.Context(), set)
		must(t, err)
		full := published.Repository + "@" + published.Digest
		pulled, err := target.Client.Pull(t.Context(), full, program.Platform, target.Access)
		must(t, err)
		dir := filepath.Join(t.TempDir(), name)
		must(t, os.Mkdir(dir, 0o755))
		path, err := image.Unpack(pulled, dir)
		must(t, err)
		tag, images[full] = published.Tag, cluster.Image{Path: path}
	}
	return tag, images
}
