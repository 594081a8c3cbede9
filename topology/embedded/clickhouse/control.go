package clickhouse

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// control asks the engine questions over HTTP, as the user that may only see and stop
// queries. A right answer also proves that it is our engine that listens there: no
// other knows the password.
type control struct {
	port     int
	password string
}

func (c control) url(path string) string {
	return "http://127.0.0.1:" + strconv.Itoa(c.port) + path
}

func (c control) query(ctx context.Context, sql string) (string, error) {
	return c.do(ctx, http.MethodPost, "/", sql)
}

func (c control) ping(ctx context.Context) error {
	body, err := c.do(ctx, http.MethodGet, "/ping", "")
	if err == nil && body != "Ok." {
		err = fmt.Errorf("/ping answered %q, want \"Ok.\"", body)
	}
	return err
}

func (c control) do(ctx context.Context, method, path, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url(path), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Close = true
	if path == "/" {
		req.Header.Set("X-ClickHouse-User", stopUser)
		req.Header.Set("X-ClickHouse-Key", c.password)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(b))
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d: %q", resp.StatusCode, text)
	}
	return text, nil
}

// serving is nil once both protocols are served: the engine waits in the last of its
// statements, which it reaches only if both listeners started.
func (c control) serving(ctx context.Context) error {
	if err := c.ping(ctx); err != nil {
		return err
	}
	n, err := c.query(ctx, "SELECT count() FROM system.processes WHERE user = '' AND query LIKE 'SELECT sleepEachRow%'")
	if err != nil {
		return err
	}
	if n != "1" {
		return fmt.Errorf("%s waiting queries, want 1", n)
	}
	return nil
}
