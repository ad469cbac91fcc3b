// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"helm.sh/helm/v3/pkg/registry"
)

// Chart is the name of the chart in messages, and the folder of a registry that the chart is
// pushed to. The folder differs from the images, because the image of the command line has
// the same name as the chart.
const Chart = "charts/bellwether"

// PublishChart pushes a packaged chart as `helm push` does, and signs it.
func (t Target) PublishChart(ctx context.Context, version string, packaged []byte, at time.Time) (Published, error) {
	var options []name.Option
	if t.Access.Insecure {
		options = append(options, name.Insecure)
	}
	repository, err := name.NewRepository(t.Registry+"/"+Chart, options...)
	if err != nil {
		return Published{}, fmt.Errorf("publish chart: %w", err)
	}
	clientOptions := []registry.ClientOption{registry.ClientOptWriter(io.Discard),
		registry.ClientOptHTTPClient(&http.Client{})}
	if repository.Scheme() == "http" {
		clientOptions = append(clientOptions, registry.ClientOptPlainHTTP())
	}
	client, err := registry.NewClient(clientOptions...)
	if err != nil {
		return Published{}, fmt.Errorf("publish chart: %w", err)
	}
	pushed, err := client.Push(packaged, repository.Name()+":"+version,
		registry.PushOptCreationTime(at.UTC().Format(time.RFC3339)))
	if err != nil {
		return Published{}, fmt.Errorf("publish chart: %w", err)
	}
	digest := pushed.Manifest.Digest
	if err := t.sign(ctx, repository.Name()+"@"+digest, digest); err != nil {
		return Published{}, err
	}
	return Published{Name: "chart", Repository: t.Registry + "/" + Chart, Tag: version, Digest: digest}, nil
}
