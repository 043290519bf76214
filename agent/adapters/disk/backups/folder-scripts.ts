/**
 * Shell scripts in a folder that may be on a disk which is removed, or on a NAS that does not answer: this process does no file call there. A script
 * whose bytes do not flow is left, and no second one is started in that folder before it has ended.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { startDeadline, withinOr } from '../../../../daemon/deadline.ts'
import type { Pieces, SendPiece } from '../../../pods/volumes/volume-backups.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { leave, NoAnswer, refuseIfLeft } from '../remote/bounded-child.ts'

export type FolderScript = {
  readonly folder: string
  readonly script: string
  readonly args: readonly string[]
  readonly input?: Pieces
  readonly output?: SendPiece
  /** So long nothing may flow. */
  readonly stallMs?: number
}

export type ScriptEnd = { readonly code: number | null; readonly errors: string }

const usualStallMs = 120_000
const killedMs = 2_000
const mostText = 2_000

/** Rejects with VolumeError if it does not answer, with the error of `input` or `output`, and when `signal` aborts. */
export async function runInFolder(
  { folder, script, args, input, output, stallMs = usualStallMs }: FolderScript,
  signal: AbortSignal,
): Promise<ScriptEnd> {
  const key = `backups in ${folder}`
  const silent = (reason: string) => new VolumeError(`the folder ${folder} does not answer: ${reason}`)
  try {
    refuseIfLeft(key)
  } catch (error) {
    throw error instanceof NoAnswer ? silent(error.message) : error
  }
  signal.throwIfAborted()
  // It must not slow down pods.
  const child = spawn('nice', ['-n', '10', 'sh', '-c', script, 'sh', ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, LC_ALL: 'C' },
  })
  let fail: (error: unknown) => void = () => undefined
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  failed.catch(() => undefined)
  let stop = () => {}
  const progress = () => {
    stop()
    stop = startDeadline(stallMs, () => fail(silent(`nothing was written or read for ${stallMs / 1000} s`)))
  }
  const abort = () => fail(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  child.once('error', fail)
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(0, mostText)
  })
  const ended = once(child, 'close').then(([code]: (number | null)[]) => code ?? null)
  ended.catch(() => undefined)
  progress()
  const all = Promise.all([ended, readFrom(child, output, progress), writeTo(child, input, { ended, progress })])
  all.catch(() => undefined)
  try {
    const [code] = await Promise.race([all, failed])
    return { code, errors: errors.trim().split('\n').slice(0, 3).join('; ') }
  } finally {
    stop()
    signal.removeEventListener('abort', abort)
    // A script that is killed ends at once, unless the folder does not answer.
    child.kill('SIGKILL')
    const hasEnded = await withinOr(
      killedMs,
      false,
      ended.then(() => true).catch(() => true),
    )
    if (!hasEnded) leave(key, child)
  }
}

async function readFrom(child: ChildProcess, output: SendPiece | undefined, progress: () => void): Promise<void> {
  for await (const piece of child.stdout ?? []) {
    progress()
    await output?.(piece as Buffer)
    progress()
  }
}

type Writing = { readonly ended: Promise<unknown>; readonly progress: () => void }

async function writeTo({ stdin }: ChildProcess, input: Pieces | undefined, { ended, progress }: Writing) {
  // It has ended: its end has the reason.
  stdin?.on('error', () => undefined)
  for (let piece = await input?.(); piece !== undefined; piece = await input?.()) {
    if (stdin === null || stdin.destroyed) return
    progress()
    if (!stdin.write(piece)) await Promise.race([once(stdin, 'drain').catch(() => undefined), ended])
    progress()
  }
  stdin?.end()
}
