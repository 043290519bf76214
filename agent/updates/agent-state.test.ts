import { basename } from 'node:path'
import { test } from 'tap'
import { checkpointPath } from '../adapters/disk/checkpoint.ts'
import { networkCheckpointPath } from '../adapters/disk/network-checkpoint.ts'
import { identityPath } from '../join/identity.ts'
import { agentStateNames } from './agent-state.ts'

test('what a version on trial could write in another format is put back: identity, checkpoint and network', async (t) => {
  const [identity, checkpoint] = [basename(identityPath('/data')), basename(checkpointPath('/data'))]
  const copies = [identity, checkpoint].flatMap((name) => [name, `${name}.copy`])
  const contents = [checkpoint, `${checkpoint}.copy`].map((name) => `${name}.contents`)
  for (const name of [...copies, ...contents, basename(networkCheckpointPath('/data'))])
    t.ok(agentStateNames.includes(name), name)
})

test('the data of pods stays as it is', async (t) => {
  for (const name of ['pods', 'agent.lock', 'wireguard.key', 'last-known-time'])
    t.notOk(agentStateNames.includes(name), name)
})
