// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Stored returns the objects of a custom resource as etcd has them, by namespace and name. Unlike the API server it
// does not convert them.
func (c *Cluster) Stored(ctx context.Context, group, resource string) (map[string][]byte, error) {
	prefix := c.etcdPrefix() + "/" + group + "/" + resource + "/"
	end := []byte(prefix)
	end[len(end)-1]++ // the first key that does not have the prefix
	body, err := json.Marshal(map[string][]byte{"key": []byte(prefix), "range_end": end})
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcd.URL()+"/v3/kv/range", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read etcd: %s", response.Status)
	}
	var found struct {
		Kvs []struct{ Key, Value []byte } `json:"kvs"`
	}
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		return nil, fmt.Errorf("decode answer of etcd: %w", err)
	}
	objects := map[string][]byte{}
	for _, kv := range found.Kvs {
		objects[strings.TrimPrefix(string(kv.Key), prefix)] = kv.Value
	}
	return objects, nil
}

// etcdPrefix is what the keys of the cluster begin with: others may share the server.
func (c *Cluster) etcdPrefix() string { return "/" + c.opts.Name + "-" + strconv.Itoa(c.port) }
