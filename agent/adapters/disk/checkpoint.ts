/**
 * The checkpoint of the pod manager in the agent's folder: the index `desired.json`, and in `desired.json.contents` a file for each
 * content that it names, written once. A copy of both, in case the card corrupts them, may be some minutes older. All may contain secrets.
 */

import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { codeOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import type { CheckpointData, PodCheckpoint } from '../../pods/wanted/pod-checkpoint.ts'
import {
  checkpointFormat,
  checkpointIndex,
  formatOf,
  hashesIn,
  readCheckpoint,
} from './pod-checkpoint/checkpoint-index.ts'
import { contentFolder, contentHash } from './pod-checkpoint/content-folder.ts'

/**
 * Why this agent must not overwrite the file: a later version wrote it, and could not read it afterwards. Undefined without such
 * a reason, even if the file has other problems.
 */
export async function laterFormat(path: string): Promise<string | undefined> {
  const found = formatOf(await readFile(path, 'utf8').catch(() => ''))
  if (found === undefined || found <= checkpointFormat) return undefined
  return `${path} was written by a later bramble-agent (format ${found}; this one reads ${checkpointFormat}). Install that version again; or move the file away: pods keep running, and the controller sends the desired state again.`
}

export function checkpointPath(dataDir: string): string {
  return join(dataDir, 'desired.json')
}

/** An incomplete or corrupted file is never used. Contents are on disk before an index that names them, and removed after it. */
export function fileCheckpoint(path: string, log: Log): PodCheckpoint {
  const copy = `${path}.copy`
  const contents = contentFolder(`${path}.contents`)
  const copies = contentFolder(`${copy}.contents`)
  const hashOf = hashesOfParts()
  let written: string | undefined

  /** Equal hashes are equal contents: one that is damaged in one folder is taken from the other. */
  const contentsOf = async (text: string): Promise<ReadonlyMap<string, string>> => {
    const found = new Map<string, string>()
    for (const hash of hashesIn(text)) {
      const content = (await contents.read(hash)) ?? (await copies.read(hash))
      if (content !== undefined) found.set(hash, content)
    }
    return found
  }

  /** Undefined if the file does not exist or is not valid; an invalid file is renamed. */
  const take = async (from: string): Promise<CheckpointData | undefined> => {
    let text: string
    try {
      text = await readFile(from, 'utf8')
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') log.error('The checkpoint cannot be read', { path: from, error })
      return undefined
    }
    try {
      return readCheckpoint(text, await contentsOf(text))
    } catch (error) {
      const aside = `${from}.unreadable`
      log.error('The checkpoint cannot be used', { path: from, aside, error })
      await rename(from, aside).catch((reason) =>
        log.warn('Cannot rename a damaged file', { path: from, error: reason }),
      )
      return undefined
    }
  }

  const copyContent = async (hash: string): Promise<void> => {
    if (copies.has(hash) || (await copies.read(hash)) !== undefined) return
    const content = await contents.read(hash)
    if (content === undefined) throw new Error(`The content ${hash} is missing or damaged`)
    await copies.add(new Map([[hash, content]]))
  }

  return {
    async load() {
      const newest = await take(path)
      if (newest !== undefined) {
        const { essence, parts } = checkpointIndex(newest, hashOf)
        // Otherwise it is in an earlier format, or a content was damaged: the next save writes what is missing.
        if ([...parts.keys()].every(contents.has)) written = essence
        return newest
      }
      const older = await take(copy)
      if (older === undefined) return undefined
      log.warn('Using the copy of the checkpoint; containers that it does not list keep running', { path: copy })
      return { ...older, mayBeOld: true }
    },
    async save(remembered) {
      const { text, essence, parts } = checkpointIndex(remembered, hashOf)
      if (essence === written) return
      const missing = [...parts].filter(([hash]) => !contents.has(hash))
      await contents.add(new Map(missing.map(([hash, part]) => [hash, JSON.stringify(part)])))
      await replaceFile(path, text, 0o600)
      written = essence
      await contents.keepOnly(new Set(parts.keys()))
    },
    async keepCopy() {
      try {
        const text = await readFile(path, 'utf8')
        if (text === (await readFile(copy, 'utf8').catch(() => ''))) return
        const hashes = hashesIn(text)
        for (const hash of hashes) await copyContent(hash)
        await replaceFile(copy, text, 0o600)
        await copies.keepOnly(hashes)
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') log.warn('Cannot copy the checkpoint', { path: copy, error })
      }
    },
  }
}

/** Objects of the desired state are never changed in place: each is hashed once. */
function hashesOfParts(): (part: object) => string {
  const known = new WeakMap<object, string>()
  return (part) => {
    const hash = known.get(part) ?? contentHash(JSON.stringify(part))
    known.set(part, hash)
    return hash
  }
}
