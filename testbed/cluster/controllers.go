// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

const (
	componentLimit = 5 * time.Minute
	// Node is the name of the one node that a pod runner registers.
	Node = "node-1"
)

// controllers is what a cluster without volumes, cloud and network needs; each controller left out saves informers and
// so memory. Those of Endpoints are out because the addresses of pods are on loopback, which Endpoints may not contain.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"cronjob-controller",
	"daemonset-controller",
	"deployment-controller",
	"disruption-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
	"ttl-after-finished-controller",
	"validatingadmissionpolicy-status-controller",
}

func (c *Cluster) startControllerManager(ctx context.Context) error {
	kubeconfig, err := c.WriteKubeconfig(build.KubeControllerManager, "system:kube-controller-manager", masters)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	spec := process.Spec{
		Name: build.KubeControllerManager,
		Path: c.opts.Binaries[build.KubeControllerManager],
		Args: []string{
			"--kubeconfig", kubeconfig,
			"--controllers", strings.Join(controllers, ","),
			"--leader-elect=false",
			"--secure-port", "0",
			"--service-account-private-key-file", c.path("pki", fileSigningKey),
			"--root-ca-file", c.path("pki", fileCA),
			"--kube-api-qps", "200", "--kube-api-burst", "400",
			// A kind that is new is counted from the next one on; 5m is the default.
			"--resource-quota-sync-period", "10s",
			"--profiling=false",
		},
	}
	// It serves no health of its own; that the first objects of its controllers exist says more.
	return c.run(ctx, spec, componentLimit, func(ctx context.Context) error {
		if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err := client.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
}

func (c *Cluster) startPodRunner(ctx context.Context) error {
	kubeconfig, err := c.WriteKubeconfig(build.PodRunner, "system:node:"+Node, masters)
	if err != nil {
		return err
	}
	images, err := c.writeImages()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	spec := process.Spec{
		Name: build.PodRunner,
		Path: c.opts.Binaries[build.PodRunner],
		Args: []string{
			"--kubeconfig", kubeconfig,
			"--node", Node,
			"--images", images,
			"--dir", c.path("pods"),
			"--ip-range", c.ranges.pods,
			"--service-range", c.ranges.services,
		},
	}
	return c.run(ctx, spec, componentLimit, func(ctx context.Context) error { return nodeReady(ctx, client) })
}

func nodeReady(ctx context.Context, client kubernetes.Interface) error {
	node, err := client.CoreV1().Nodes().Get(ctx, Node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return nil
		}
	}
	return fmt.Errorf("check node %s: not Ready yet", Node)
}

// writeImages tells the pod runner which program stands for which image. It is told of links, which ReplaceProgram
// leads elsewhere.
func (c *Cluster) writeImages() (string, error) {
	images := map[string]Image{}
	for name, image := range c.opts.Images {
		if image.Missing {
			images[name] = image
			continue
		}
		if err := c.ReplaceProgram(name, image.Path); err != nil {
			return "", err
		}
		images[name] = Image{Path: c.Program(name)}
	}
	content, err := json.MarshalIndent(images, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode images: %w", err)
	}
	path := c.path("images.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write images: %w", err)
	}
	return path, nil
}

// Program is the link to the program that stands for an image: containers are started by this path, whatever program
// that is.
func (c *Cluster) Program(image string) string { return c.path("programs", url.PathEscape(image)) }

// ReplaceProgram has another program stand for one of the images of Options from the next start of a container on.
// Containers that run are left alone.
func (c *Cluster) ReplaceProgram(image, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find program of image %s: %w", image, err)
	}
	link := c.Program(image)
	next := link + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace program of image %s: %w", image, err)
	}
	if err := os.Symlink(path, next); err != nil {
		return fmt.Errorf("replace program of image %s: %w", image, err)
	}
	if err := os.Rename(next, link); err != nil {
		return fmt.Errorf("replace program of image %s: %w", image, err)
	}
	return nil
}
