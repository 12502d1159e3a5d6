package sqlite
import ("testing";"context";"time";"path/filepath";"math/rand/v2";"github.com/parleyrun/parley/journal";"github.com/parleyrun/parley/sessionlog";"fmt";"sync")
func TestZZ(t *testing.T){
 j,err:=Open(filepath.Join(t.TempDir(),"j.db")); if err!=nil {t.Fatal(err)}
 done:=make(chan error,1)
 h:=sessionlog.Header{Version:3,ID:"s"}
 seq:=int64(0); ep:=int64(0)
 for i:=0;i<300;i++{ b:=journal.Batch{Session:"s",Epoch:ep,Seq:seq,Events:[]sessionlog.Event{sessionlog.NewEvent("parley/x",map[string]int{"a":i}).Ours().At(seq,1)}}
  if i==0 {b.Header=&h}
  j.Append(b,func(a journal.Appended,e error){ep=a.Epoch;done<-e}); if e:=<-done;e!=nil{t.Fatal(e)}; seq++ }
 kinds:=map[string]int{}; var mu sync.Mutex
 var wg sync.WaitGroup
 for w:=0;w<8;w++{ wg.Add(1); go func(){defer wg.Done(); for i:=0;i<800;i++{ ctx,c:=context.WithTimeout(t.Context(), time.Duration(rand.N(1500))*time.Microsecond); _,e:=j.Read(ctx,"s",0,0); c(); mu.Lock(); kinds[fmt.Sprintf("%T %v",e,e)]++; mu.Unlock() }}() }
 wg.Wait()
 go func(){ for i:=0;i<1;i++ { j.Close() } }()
 for i:=0;i<2000;i++{ _,e:=j.Read(t.Context(),"s",0,0); kinds[fmt.Sprintf("close %T %v",e,e)]++ }
 for k,v:=range kinds {fmt.Println(v,k)}
}
