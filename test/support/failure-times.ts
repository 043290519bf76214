/** How long it takes until the API shows that a node has failed. */
import type { Controller } from './fleet.ts'
import type { Program } from './program.ts'
import { eventually } from './wait.ts'

export type SeenFailure = {
  /** From the end of the agent. */
  readonly seconds: number
  /** Message of the Ready condition, in the version of the Node that ended the wait. */
  readonly message: string
}

/** Kills the agent of a node and waits until Ready is Unknown. `kubectl` watches before, so that its start is not measured. */
export async function killedAndSeen(controller: Controller, name: string, agent: Program): Promise<SeenFailure> {
  const output = ['-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].message}']
  const seen = controller.kubectl('wait', '--for=condition=Ready=Unknown', `node/${name}`, '--timeout=80s', ...output)
  const killedMs = performance.now()
  agent.kill('SIGKILL')
  const message = await seen
  return { seconds: (performance.now() - killedMs) / 1000, message }
}

/** Resolves soon after a heartbeat: the node may be silent longest from here. */
export async function nextHeartbeat({ kubectl }: Controller, name: string): Promise<void> {
  const lease = ['get', 'lease', name, '-n', 'kube-node-lease', '-o', 'jsonpath={.spec.renewTime}']
  const before = await kubectl(...lease)
  await eventually(`a heartbeat of ${name}`, async () => (await kubectl(...lease)) !== before)
}
