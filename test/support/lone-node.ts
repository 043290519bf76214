/** A node whose controller cannot be reached: the agent as a program, and its last desired state as checkpointed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { fileCheckpoint } from '../../agent/adapters/disk/checkpoint.ts'
import { dockerRuntime } from '../../agent/adapters/docker/docker-runtime.ts'
import { writeIdentity } from '../../agent/join/identity.ts'
import type { ContainerRuntime, RuntimeContainer } from '../../agent/runtime/runtime.ts'
import type { Pod } from '../../api/pod.ts'
import { openAuthority } from '../../certs/authority.ts'
import { issueNode } from '../../certs/issue.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import type { TestDockerd } from './dockerd.ts'
import { temporaryFolder } from './fleet.ts'
import { type Program, startProgram } from './program.ts'
import { endOfAgent } from './volumes.ts'

const agentProgram = fileURLToPath(new URL('../../agent/main.js', import.meta.url))
const nodeName = 'pi-01'

export type LoneNode = {
  readonly dataDir: string
  /** The engine as this node's agent sees it. */
  readonly runtime: ContainerRuntime
  /** What an agent that starts later finds as its controller's last word. */
  want(...pods: readonly Pod[]): Promise<void>
  /** `root`: another machine's files; `dockerSocket`: in place of the engine's own; `settings`: of its configuration. */
  startAgent(more?: {
    readonly root?: string
    readonly dockerSocket?: string
    readonly settings?: { readonly [field: string]: unknown }
  }): Program
}

export async function loneNode(t: Test, dockerd: TestDockerd): Promise<LoneNode> {
  const dataDir = await temporaryFolder(t)
  const authority = await openAuthority(join(dataDir, 'authority'), Date.now())
  const keys = issueNode(authority, { nodeName, nowMs: Date.now() })
  await writeIdentity(dataDir, {
    nodeName,
    apiUrl: 'https://127.0.0.1:1',
    mqttUrl: 'mqtts://127.0.0.1:1',
    ca: authority.certificate,
    certificate: keys.certificate,
    key: keys.key,
  })
  let version = 0
  return {
    dataDir,
    runtime: dockerRuntime({ socketPath: dockerd.socket, nodeName }),
    want: (...pods) =>
      fileCheckpoint(join(dataDir, 'desired.json'), quietLog(t)).save({
        desired: { epoch: 'one', version: ++version, pods },
        endings: {},
      }),
    startAgent({ root = '/', dockerSocket = dockerd.socket, settings = {} } = {}) {
      const config = join(dataDir, 'agent.yaml')
      writeFileSync(
        config,
        JSON.stringify({ apiVersion: 'bramble.dev/v1alpha1', kind: 'AgentConfiguration', ...settings }),
      )
      return startProgram(
        [
          ...[process.execPath, agentProgram, 'run', `--data-dir=${dataDir}`, `--docker-socket=${dockerSocket}`],
          ...[`--root=${root}`, `--config=${config}`, '--healthz-port=0', '--log-format=json'],
        ],
        endOfAgent(t, dataDir),
      )
    },
  }
}

/** Is this one of these pods' containers, and does it run? */
export function isServing(pods: readonly Pod[]) {
  const uids = new Set(pods.map(({ metadata }) => metadata.uid))
  return ({ state, identity }: RuntimeContainer): boolean =>
    state === 'running' && identity.kind === 'container' && uids.has(identity.podUID)
}
