/** Measures the disk writes of a controller whose fleet is idle. `--help` prints the usage. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { t as program, test } from 'tap'
import type { Controller } from '../test/support/fleet.ts'
import { joinedFleet } from '../test/support/joined-fleet.ts'
import { podManifest } from '../test/support/manifests.ts'
import { image } from '../test/support/pods.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const { parts, minutes, settle } = benchmarkOptions({
  name: 'node dist/bench/writes.js',
  text: `Measures what a controller writes to its disk while its fleet is idle: three agents as real programs, with an engine and a pod each. Prints
for each part of the time the bytes that the process caused to be written (/proc/PID/io), how much its files grew, both for a day, and which objects
changed, heartbeats aside. Needs root, docker.io, kubectl, and bundles (npm run build).`,
  options: {
    parts: { value: 'N', help: 'parts of the time', range: [1, 100_000], default: '6' },
    minutes: { value: 'MIN', help: 'length of each', range: [1, 100_000], default: '5' },
    settle: { value: 'MIN', help: 'minutes before the first', range: [0, 100_000], default: '6' },
  },
})
const names = ['pi-1', 'pi-2', 'pi-3']

// tap's own 30 s would end it, unless the environment has TAP_TIMEOUT.
program.setTimeout(0)

test('a fleet at rest', { timeout: 24 * 3_600_000 }, async (t) => {
  const { controller, startReady } = await joinedFleet(t, { names })
  await startReady()
  for (const name of names) {
    await controller.kubectlWith(
      podManifest({ name: `on-${name}`, image, spec: { nodeName: name } }),
      'apply',
      '-f',
      '-',
    )
  }
  await controller.kubectl('wait', '--for=condition=Ready', ...names.map((name) => `pod/on-${name}`), '--timeout=80s')
  await delay(settle * 60_000)

  let objects = await objectsOf(controller)
  const first = await written(controller)
  let before = first
  t.comment(`${first.bytes} bytes written by then, the files have ${first.fileBytes}`)
  for (let part = 1; part <= parts; part++) {
    await delay(minutes * 60_000)
    const now = await written(controller)
    t.comment(row(`to ${part * minutes} min`, before, now, minutes))
    before = now
    const present = await objectsOf(controller)
    for (const name of new Set([...present.keys(), ...objects.keys()])) {
      const paths = changedPaths(objects.get(name), present.get(name))
      if (paths.length > 0) t.comment(`  ${name}: ${paths.slice(0, 5).join(', ')}`)
    }
    objects = present
  }
  t.comment(row('all of it', first, before, parts * minutes))
  t.ok(perDay(before.bytes - first.bytes, parts * minutes) <= 1_000_000, 'at most 1 MB a day')
})

type Written = { readonly bytes: number; readonly fileBytes: number }

async function written({ program, dataDir }: Controller): Promise<Written> {
  const io = await readFile(`/proc/${program.pid}/io`, 'utf8')
  const field = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(io)?.[1])
  const files = await readdir(dataDir, { recursive: true })
  const sizes = await Promise.all(files.map(async (name) => (await stat(join(dataDir, name))).size))
  return {
    // Less what was removed again before it was written.
    bytes: field('write_bytes') - field('cancelled_write_bytes'),
    fileBytes: sizes.reduce((sum, size) => sum + size, 0),
  }
}

function perDay(bytes: number, ofMinutes: number): number {
  return Math.round((bytes / ofMinutes) * 24 * 60)
}

function row(what: string, before: Written, now: Written, ofMinutes: number): string {
  const bytes = now.bytes - before.bytes
  const growth = now.fileBytes - before.fileBytes
  return `${what}: ${bytes} bytes written, ${(perDay(bytes, ofMinutes) / 1e6).toFixed(2)} MB a day; the files grew by ${growth}`
}

async function objectsOf(controller: Controller): Promise<ReadonlyMap<string, unknown>> {
  const kinds = 'nodes,pods,events,configmaps,secrets,namespaces,certificatesigningrequests'
  const listed: { readonly items: readonly Listed[] } = JSON.parse(
    await controller.kubectl('get', kinds, '-A', '-o', 'json'),
  )
  return new Map(listed.items.map((one) => [`${one.kind} ${one.metadata.name} ${one.reason ?? ''}`, one]))
}

type Listed = { readonly kind: string; readonly reason?: string; readonly metadata: { readonly name: string } }

/** Heartbeats give a Node another version, too, and are not written. */
const unwritten = ['resourceVersion', 'lastHeartbeatTime']

function changedPaths(before: unknown, now: unknown, path = ''): readonly string[] {
  if (isDeepStrictEqual(before, now)) return []
  if (!isObject(before) || !isObject(now)) return [path || 'the whole object']
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])].filter((name) => !unwritten.includes(name))
  return names.flatMap((name) => changedPaths(before[name], now[name], `${path}.${name}`))
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
