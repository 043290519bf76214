/** The folder of static pod manifests. Unchanged files are not read again. */

import { readdir, readFile, stat, watch } from 'node:fs/promises'
import { join } from 'node:path'
import { within } from '../../../daemon/deadline.ts'
import { codeOf, messageOf } from '../../../daemon/errors.ts'
import { mostYamlBytes, readYamlInTurns, YamlError } from '../../../daemon/yaml/yaml-reader.ts'
import type { ManifestFile, ManifestFolder } from '../../pods/static/static-pod-manager.ts'

const endings = ['.yaml', '.yml', '.json']
const deadlineMs = 10_000

export function manifestFolder(path: string): ManifestFolder {
  let known: ReadonlyMap<string, { readonly stamp: string; readonly file: ManifestFile }> = new Map()

  const read = async (): Promise<readonly ManifestFile[]> => {
    const next = new Map<string, { stamp: string; file: ManifestFile }>()
    for (const name of await namesIn(path)) {
      const file = join(path, name)
      const facts = await stat(file).catch(() => undefined)
      if (facts === undefined || !facts.isFile()) continue // removed meanwhile, or not a file
      const stamp = `${facts.ino} ${facts.size} ${facts.mtimeMs} ${facts.ctimeMs}`
      const last = known.get(file)
      next.set(file, last?.stamp === stamp ? last : { stamp, file: await manifest(file, facts.size) })
    }
    known = next
    return [...next.values()].map(({ file }) => file)
  }

  return {
    read: () => within(deadlineMs, `Folder ${path} was not read`, read()),
    async watch(changed, signal) {
      try {
        for await (const _ of watch(path, { signal, persistent: false })) changed()
      } catch {
        // The folder does not exist, or the watch failed or ended: the periodic read continues.
      }
    },
  }
}

/** Sorted. Names that start with a dot are ignored (pkg/kubelet/config/file_linux.go). */
async function namesIn(path: string): Promise<readonly string[]> {
  try {
    const names = await readdir(path)
    return names.filter((name) => !name.startsWith('.') && endings.some((ending) => name.endsWith(ending))).sort()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** As the kubelet reads it: of equal keys the last counts (pkg/kubelet/config/common.go). */
async function manifest(path: string, size: number): Promise<ManifestFile> {
  if (size > mostYamlBytes) return { path, problem: `it is longer than ${mostYamlBytes} bytes` }
  try {
    return { path, content: await readYamlInTurns(await readFile(path), { allowDuplicates: true }) }
  } catch (error) {
    return {
      path,
      problem: `${error instanceof YamlError ? 'it is not YAML' : 'it cannot be read'}: ${messageOf(error)}`,
    }
  }
}
