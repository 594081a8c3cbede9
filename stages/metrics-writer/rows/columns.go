package rows

import "reflect"

// Tables are one empty row of each table, in the order in which a range is inserted.
func Tables() []Row {
	return []Row{
		&Trajectory{}, &Turn{}, &GroupMember{}, &Group{}, &GroupFate{}, &StepBatch{}, &BatchMember{}, &MicroBatch{},
		&TrainerReport{}, &TrainerAnnotation{}, &PolicyUpdate{}, &DeadLetter{},
		&ReplayScore{}, &ReplayGroup{}, &ReplayGroupFate{}, &ReplayStepBatch{}, &ReplayBatchMember{},
	}
}

// Columns are the names of a row's columns, in order.
func Columns(r Row) []string { return columns(reflect.TypeOf(r).Elem()) }

func columns(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			out = append(out, columns(f.Type)...)
			continue
		}
		out = append(out, f.Tag.Get("ch"))
	}
	return out
}
