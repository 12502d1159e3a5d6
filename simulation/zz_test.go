package simulation
import ("testing";"time";"fmt")
func TestZZ(t *testing.T){ for _,p:=range Profiles { n:=0; st:=time.Now(); steps:=0; for s:=uint64(1);s<=100;s++{ func(){ defer func(){ if r:=recover();r!=nil{ n++; if n<3 {fmt.Println(p.Name,s,r)} } }(); rep:=Run(Draw(s,p),Options{}); steps+=rep.Steps; if rep.Steps>=stepsMax {fmt.Println("max",s)}; _=rep }() }; fmt.Println(p.Name, n, time.Since(st), steps)}}
