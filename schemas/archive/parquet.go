package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/sluice-rl/sluice/schemas/codec"
)

// formatKey is the metadata that marks a Parquet file as an archive.
const formatKey = "sluice.archive.format"

// rowGroup is how many rows are written together: a compromise between memory and
// compression, since a trajectory may have 100 kB.
const rowGroup = 1024

// row is one row of Parquet.
type row struct {
	Topic     string      `parquet:"topic,dict,zstd"`
	Partition int32       `parquet:"partition"`
	Offset    int64       `parquet:"offset,delta"`
	Time      int64       `parquet:"time,timestamp(millisecond),delta"`
	Type      string      `parquet:"type,dict,zstd"`
	Key       []byte      `parquet:"key,zstd"`
	Headers   []rowHeader `parquet:"headers,list"`
	Value     []byte      `parquet:"value,zstd"`

	// For other tools.
	RunID       string `parquet:"run_id,dict,zstd"`
	Incarnation uint32 `parquet:"incarnation"`
	Step        uint64 `parquet:"step"`
	Slot        uint32 `parquet:"slot"`
	SampleIndex *int32 `parquet:"sample_index,optional"`
	Copy        uint64 `parquet:"copy"`
	QuestionID  string `parquet:"question_id,zstd"`
	DataSource  string `parquet:"data_source,dict,zstd"`
}

type rowHeader struct {
	Key   string `parquet:"key,dict,zstd"`
	Value []byte `parquet:"value,zstd"`
}

func rowOf(r Record) row {
	f := r.Facts()
	out := row{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time.UnixMilli(), Type: r.Type(), Key: r.Key, Value: r.Value,
		RunID: f.GetGroup().GetRunId(), Incarnation: f.GetGroup().GetIncarnation(), Step: f.GetGroup().GetStep(), Slot: f.GetGroup().GetSlot(),
		Copy: f.GetCopy(), QuestionID: f.GetQuestionId(), DataSource: f.GetDataSource(),
	}
	if f.Origin != nil && f.SampleIndex != nil {
		index := int32(f.GetSampleIndex())
		out.SampleIndex = &index
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, rowHeader{h.Key, h.Value})
	}
	return out
}

// record copies what it takes: the reader uses its buffers again.
func (w *row) record() Record {
	r := Record{Topic: w.Topic, Partition: w.Partition, Offset: w.Offset, Time: time.UnixMilli(w.Time).UTC()}
	r.Key, r.Value = bytes.Clone(w.Key), bytes.Clone(w.Value)
	for _, h := range w.Headers {
		r.Headers = append(r.Headers, codec.Header{Key: h.Key, Value: bytes.Clone(h.Value)})
	}
	return r
}

// parquetWriter writes one file of Parquet.
type parquetWriter struct{ w *parquet.GenericWriter[row] }

func newParquetWriter(w io.Writer) *parquetWriter {
	return &parquetWriter{parquet.NewGenericWriter[row](w,
		parquet.KeyValueMetadata(formatKey, strconv.Itoa(Format)), parquet.MaxRowsPerRowGroup(rowGroup))}
}

func (p *parquetWriter) Write(r Record) error {
	_, err := p.w.Write([]row{rowOf(r)})
	return err
}

func (p *parquetWriter) Close() error { return p.w.Close() }

// readParquet calls f with each record of a file.
func readParquet(file *os.File, f func(Record) error) (err error) {
	defer func() {
		// The library panics on some broken files.
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrUnreadable, p)
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	pf, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	text, ok := pf.Lookup(formatKey)
	format, err := strconv.Atoi(text)
	switch {
	case !ok || err != nil || format < 1:
		return fmt.Errorf("%w: Parquet without metadata %s: it was written by something other than `sluice export`", ErrUnreadable, formatKey)
	case format > Format:
		return fmt.Errorf("%w: format %d, this build reads up to %d: upgrade it", ErrNewerFormat, format, Format)
	}
	reader := parquet.NewGenericReader[row](pf)
	defer reader.Close()
	var stop error
	rows := make([]row, 64)
	for {
		n, err := reader.Read(rows)
		for i := range rows[:n] {
			if stop = f(rows[i].record()); stop != nil {
				return stop
			}
		}
		clear(rows)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
	}
}
