/** The machine's own Prometheus, as an account of a fleet that reads metrics. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../agent/testing/free-port.ts'
import type { Controller } from './fleet.ts'
import { skipWithout } from './missing-parts.ts'

/** For the options of a test. */
export const skipWithoutPrometheus = skipWithout(
  'prometheus',
  ['prometheus', 'promtool'].every((program) => spawnSync(program, ['--version']).status === 0),
)

export type Sample = {
  readonly metric: { readonly [label: string]: string }
  readonly value: readonly [number, string]
}

export type RunningPrometheus = {
  /** Throws if the query is not valid. */
  query(text: string): Promise<readonly Sample[]>
  /** The `data` of the answer at a path below /api/v1/. */
  read(path: string): Promise<unknown>
  /** What it wrote to its log. */
  errors(): string
}

/** Writes `ca.crt` and `prometheus.token` of the account `prometheus`, which has the role of readers of metrics. */
export async function metricsAccount({ kubectl }: Controller, folder: string): Promise<void> {
  await kubectl('create', 'serviceaccount', 'prometheus')
  const binding = ['--clusterrole=bramble:metrics-reader', '--serviceaccount=default:prometheus']
  await kubectl('create', 'clusterrolebinding', 'prometheus', ...binding)
  const authority = ['config', 'view', '--raw', '-o', 'jsonpath={.clusters[0].cluster.certificate-authority-data}']
  await writeFile(join(folder, 'ca.crt'), Buffer.from(await kubectl(...authority), 'base64'))
  await writeFile(join(folder, 'prometheus.token'), (await kubectl('create', 'token', 'prometheus')).trim())
}

/** Runs until the end of the test, with the configuration in the folder's `prometheus.yml`. */
export async function startPrometheus(t: Test, folder: string): Promise<RunningPrometheus> {
  const port = await freePort()
  const child = spawn(
    'prometheus',
    ['--config.file=prometheus.yml', '--storage.tsdb.path=tsdb', `--web.listen-address=127.0.0.1:${port}`],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let errors = ''
  child.stderr.on('data', (piece: Buffer) => {
    errors += piece.toString()
  })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const read = async (path: string): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)
    const { data, error } = (await answer.json()) as { data?: unknown; error?: string }
    if (error !== undefined) throw new Error(`${path}: ${error}`)
    return data
  }
  return {
    read,
    async query(text) {
      const { result } = (await read(`query?query=${encodeURIComponent(text)}`)) as { result: Sample[] }
      return result
    },
    errors: () => errors,
  }
}
