// A model that asks once, waits for what comes late, and says what it read.
import { type AgentTool } from "@parley/client";

type Message = { role: string; content: string };

export async function model(messages: Message[], tools: AgentTool[]): Promise<{ message: Message; calls: { name: string; arguments: string }[] }> {
  const said = (text: string) => messages.some((m) => m.content.includes(text));
  if (said('"answer_to_pending_question"')) {
    console.log(messages[messages.length - 1]?.content);
    throw new Error("done");
  }
  const ask = { questions: [{ id: "ship", question: "Ship it?" }], timeout: 1 };
  const calls = said('"pending":true') ? [] : [{ name: tools[0]?.name ?? "", arguments: JSON.stringify(ask) }];
  return { message: { role: "assistant", content: "" }, calls };
}
