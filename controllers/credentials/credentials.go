// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials keeps what an agent reaches its hub with. It begins with the kubeconfig that `bellwether fleet
// join` made, renews the token in it long before it ends, follows the hub's certificate authority, and stores both,
// so that a restart goes on with them. Where they are stored is for the caller to say; what an agent does on the hub
// is none of its business.
package credentials

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

// Store keeps what was renewed next to the kubeconfig that it was renewed from.
type Store interface {
	// Load returns the kubeconfig and what Save stored last; nil if that is nothing.
	Load(ctx context.Context) (kubeconfig, renewed []byte, err error)
	// Save stores what was renewed. It does not change the kubeconfig.
	Save(ctx context.Context, renewed []byte) error
}

// renewed is what an agent got since it joined, in place of what is in the kubeconfig. It is bound to that
// kubeconfig: one that `fleet join` writes later is newer than all that was renewed before.
type renewed struct {
	// Of is the SHA-256 of the kubeconfig.
	Of    string `json:"of"`
	Token string `json:"token,omitempty"`
	// Authority is the hub's own bundle of certificates, in PEM. Empty: the kubeconfig's is used.
	Authority []byte `json:"authority,omitempty"`
}

// Credentials are how an agent reaches its hub. Clients that are made from Config always use the newest ones.
type Credentials struct {
	config *rest.Config
	// renewable tells whether the kubeconfig holds a token, and authority is the file with the certificates that
	// the hub is verified by, if the kubeconfig holds some.
	renewable bool
	authority string

	// now is what is in use. Only a Keeper changes it.
	now   renewed
	token atomic.Pointer[string]
}

// Load reads credentials. Certificates are kept in a file below folder, by which clients notice new ones; empty: that
// for temporary files.
func Load(ctx context.Context, store Store, folder, userAgent string) (*Credentials, error) {
	kubeconfig, stored, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("use kubeconfig: %w", err)
	}
	c := &Credentials{config: rest.AddUserAgent(config, userAgent), now: renewed{Of: digest(kubeconfig)}}
	var last renewed
	// What cannot be read is as good as nothing: the kubeconfig remains.
	if json.Unmarshal(stored, &last) == nil && last.Of == c.now.Of {
		c.now = last
	}
	c.useToken()
	return c, c.useAuthority(folder)
}

func digest(kubeconfig []byte) string {
	sum := sha256.Sum256(kubeconfig)
	return hex.EncodeToString(sum[:])
}

// Config returns a configuration for clients of the hub.
func (c *Credentials) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Account returns the UID of the ServiceAccount whose token is in use; empty if the credentials are something else.
func (c *Credentials) Account() types.UID {
	token := c.token.Load()
	if token == nil {
		return ""
	}
	claims, err := parse(*token)
	if err != nil {
		return ""
	}
	return claims.account()
}

func (c *Credentials) useToken() {
	token := c.config.BearerToken
	if token == "" || c.config.BearerTokenFile != "" {
		return
	}
	if c.now.Token != "" {
		token = c.now.Token
	}
	c.renewable = true
	c.token.Store(&token)
	c.config.BearerToken = ""
	c.config.Wrap(transport.TokenSourceWrapTransport(c))
}

// Token implements oauth2.TokenSource. When the token ends is not said: the server decides that, by its own clock.
func (c *Credentials) Token() (*oauth2.Token, error) {
	return &oauth2.Token{AccessToken: *c.token.Load()}, nil
}

// useAuthority moves the certificates from the configuration to a file, since client-go reads those again.
func (c *Credentials) useAuthority(folder string) error {
	if !c.renewable || len(c.config.CAData) == 0 {
		return nil
	}
	if len(c.now.Authority) > 0 {
		c.config.CAData = c.now.Authority
	}
	if folder != "" {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("keep the hub's certificate authority: %w", err)
		}
	}
	dir, err := os.MkdirTemp(folder, "hub-ca-")
	if err != nil {
		return fmt.Errorf("keep the hub's certificate authority: %w", err)
	}
	c.authority = filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(c.authority, c.config.CAData, 0o600); err != nil {
		return fmt.Errorf("keep the hub's certificate authority: %w", err)
	}
	c.config.CAFile, c.config.CAData = c.authority, nil
	return nil
}

// Close removes the file with the certificates.
func (c *Credentials) Close() {
	if c.authority != "" {
		_ = os.RemoveAll(filepath.Dir(c.authority))
	}
}

// claims are what is read of a ServiceAccount's token. The agent trusts the hub, so the signature is not verified.
type claims struct {
	Subject string `json:"sub"`
	Issued  int64  `json:"iat"`
	Expires int64  `json:"exp"`
	Bound   struct {
		Account struct {
			UID types.UID `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
	// Legacy is in tokens that never expire.
	Legacy types.UID `json:"kubernetes.io/serviceaccount/service-account.uid"`
}

func (c claims) account() types.UID {
	if c.Legacy != "" {
		return c.Legacy
	}
	return c.Bound.Account.UID
}

// Namespace returns that of the ServiceAccount that a token is for; empty where it is for none.
func Namespace(token string) string {
	c, err := parse(strings.TrimSpace(token))
	account, ok := strings.CutPrefix(c.Subject, "system:serviceaccount:")
	if err != nil || !ok {
		return ""
	}
	namespace, _, _ := strings.Cut(account, ":")
	return namespace
}

// lifetime is by the clock of the hub alone; zero if the token does not say.
func (c claims) lifetime() time.Duration { return time.Duration(c.Expires-c.Issued) * time.Second }

func parse(token string) (claims, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errors.New("not a JSON web token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c, fmt.Errorf("decode token: %w", err)
	}
	if err := json.Unmarshal(payload, &c); err != nil {
		return c, fmt.Errorf("decode token: %w", err)
	}
	return c, nil
}
