package simulation

func (w *World) check() []Failure { return nil }
