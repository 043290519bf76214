/** Files by which the agent and the programs of its package agree on updates. */
import { mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../../api/decode.ts'
import { AgentReleaseSchema } from '../../../api/node/agent-update.ts'
import { bool, integer, list, mapOf, object, oneOf, optional, type TSchema, text } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { isMissing } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import { fileDisk } from '../../../daemon/updates/file-disk.ts'
import { replaceOn } from '../../../daemon/updates/update-disk.ts'
import { loadUpdateState } from '../../../daemon/updates/update-folder.ts'
import { agentStateNames } from '../../updates/agent-state.ts'
import type { SpentBytes } from '../../updates/download-allowance.ts'
import type { UpdateFiles, WantedUpdate } from '../../updates/update-manager.ts'
import type { UpdateNote } from '../../updates/update-report.ts'

const wantedFile = 'wanted.json'
const noteFile = 'note.json'
const spentFile = 'spent.json'
const BaseSchema = object({ version: text, sequence: integer })
const WantedSchema = object({
  release: AgentReleaseSchema,
  rules: object({
    window: optional(object({ fromMinute: integer, toMinute: integer })),
    bytesPerDay: optional(integer),
    isMetered: bool,
  }),
})
const SpentSchema = object({ day: integer, bytes: integer })
/** Sizes in a release.json, whose signatures the updater checks. */
const SizesSchema = object({
  archives: mapOf(object({ size: integer, deltas: optional(list(object({ base: text, size: integer }))) })),
})
const NoteSchema = object({ sequence: integer, outcome: oneOf('waiting', 'blocked'), reason: text })

export type UpdatePlaces = {
  /** The folder of the updates, and that of the package of the agent. */
  readonly folder: string
  readonly package: string
  readonly dataDir: string
  readonly log: Log
}

export function updateFiles({ folder, package: ofPackage, dataDir, log }: UpdatePlaces): UpdateFiles & {
  saveNote(note: UpdateNote | undefined): Promise<void>
  spent(): Promise<SpentBytes | undefined>
  saveSpent(spent: SpentBytes): Promise<void>
} {
  const save = async (name: string, value: WantedUpdate | UpdateNote | SpentBytes | undefined) => {
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
    downloadedPercent: (digest) => downloadedPercent(downloadFolder(folder), digest),
    wanted: () => readDecoded(join(folder, wantedFile), WantedSchema),
    saveWanted: (wanted) => save(wantedFile, wanted),
    spent: () => readDecoded(join(folder, spentFile), SpentSchema),
    saveSpent: (spent) => save(spentFile, spent),
  }
}

/** Where the updater downloads releases to: a folder for each, named by its digest. `folder`: of the updates. */
export function downloadFolder(folder: string): string {
  return join(folder, 'download')
}

async function downloadedPercent(downloads: string, digest: string): Promise<number | undefined> {
  const names = await readdir(join(downloads, digest)).catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })
  for (const name of names) {
    const [, arch = '', base] = /_([a-z0-9]+)\.(?:tar|from-([0-9a-f]{16})\.delta)(?:\.part)?$/.exec(name) ?? []
    const sizes = arch === '' ? undefined : await readDecoded(join(downloads, digest, 'release.json'), SizesSchema)
    const archive = sizes?.archives[arch]
    const downloaded = base === undefined ? archive : archive?.deltas?.find((one) => one.base.startsWith(base))
    const size = downloaded?.size ?? 0
    if (size > 0) return Math.min(100, Math.floor(((await stat(join(downloads, digest, name))).size * 10) / size) * 10)
  }
  return undefined
}

/** Undefined: there is no such file, or a power cut or the card has damaged it. */
async function readDecoded<const S extends TSchema>(path: string, schema: S) {
  const written = await readFile(path, 'utf8').catch((error: unknown) => {
    if (!isMissing(error)) throw error
  })
  const decoded = decode(schema, parseJson(written ?? ''))
  return decoded.ok ? decoded.value : undefined
}
