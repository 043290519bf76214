/** The HAProxy of this host for an image: no image of it can be pulled in tests. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { TarEntry } from '../../agent/pods/images/tar.ts'
import { commandOrThrow } from './machine-commands.ts'
import { skipWithout } from './missing-parts.ts'

const haproxy = '/usr/sbin/haproxy'

/** For `test(name, { skip: whyNoProxy() }, …)`. Throws where it is missing without an opt-out. */
export function whyNoProxy(): string | false {
  return skipWithout('haproxy', existsSync(haproxy))
}

/** The program as `/bin/haproxy`, with its libraries at their paths. */
export async function proxyEntries(): Promise<readonly TarEntry[]> {
  const printed = await commandOrThrow('ldd', [haproxy])
  const libraries = [...printed.matchAll(/(?:^|=> )\s*(\/\S+) \(/gm)].map(([, path = '']) => path)
  const folders = new Set(libraries.flatMap((path) => parentsOf(path)))
  const file = async (from: string, to: string): Promise<TarEntry> => ({
    path: to.slice(1),
    content: await readFile(from),
    mode: 0o755,
  })
  return [
    ...[...folders].sort().map((path) => ({ path: `${path.slice(1)}/`, folder: true, mode: 0o755 }) as const),
    ...(await Promise.all([file(haproxy, '/bin/haproxy'), ...libraries.map((path) => file(path, path))])),
  ]
}

function parentsOf(path: string): readonly string[] {
  const folder = dirname(path)
  return folder === '/' ? [] : [...parentsOf(folder), folder]
}
