/** Files by which the agent and the programs of its package agree on updates. */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../../api/decode.ts'
import { type AgentRelease, AgentReleaseSchema } from '../../../api/node/agent-update.ts'
import { integer, object, oneOf, type TSchema, text } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { isMissing } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import { fileDisk } from '../../../daemon/updates/file-disk.ts'
import { replaceOn } from '../../../daemon/updates/update-disk.ts'
import { loadUpdateState } from '../../../daemon/updates/update-folder.ts'
import { agentStateNames } from '../../updates/agent-state.ts'
import type { UpdateFiles } from '../../updates/update-manager.ts'
import type { UpdateNote } from '../../updates/update-report.ts'

const wantedFile = 'wanted.json'
const noteFile = 'note.json'
const BaseSchema = object({ version: text, sequence: integer })
const NoteSchema = object({ sequence: integer, outcome: oneOf('waiting', 'blocked'), reason: text })

export type UpdatePlaces = {
  /** Of the updates, and of the package of the agent. */
  readonly folder: string
  readonly package: string
  readonly dataDir: string
  readonly log: Log
}

export function updateFiles({ folder, package: ofPackage, dataDir, log }: UpdatePlaces): UpdateFiles & {
  saveNote(note: UpdateNote | undefined): Promise<void>
} {
  const save = async (name: string, value: AgentRelease | UpdateNote | undefined) => {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    if (value !== undefined) return replaceOn(fileDisk, folder, name, JSON.stringify(value))
    await fileDisk.remove(`${folder}/${name}`)
    await fileDisk.syncFolder(folder)
  }
  return {
    base: () => readDecoded(join(ofPackage, 'release.json'), BaseSchema),
    state: () => loadUpdateState({ disk: fileDisk, folder, dataFolder: dataDir, names: agentStateNames, log }),
    note: () => readDecoded(join(folder, noteFile), NoteSchema),
    saveNote: (note) => save(noteFile, note),
    wanted: () => readDecoded(join(folder, wantedFile), AgentReleaseSchema),
    saveWanted: (release) => save(wantedFile, release),
  }
}

/** Undefined: there is no such file, or a power cut or the card has damaged it. */
async function readDecoded<const S extends TSchema>(path: string, schema: S) {
  const written = await readFile(path, 'utf8').catch((error: unknown) => {
    if (!isMissing(error)) throw error
  })
  const decoded = decode(schema, parseJson(written ?? ''))
  return decoded.ok ? decoded.value : undefined
}
