/** Joins a fleet unattended, by a file on the boot partition: retries until it succeeds, then removes the token from the file. */

import { createHash } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { dirname, join as pathJoin } from 'node:path'
import { dnsSubdomainProblem } from '../../api/names.ts'
import type { HardwareIdentity } from '../../api/node/hardware-identity.ts'
import { backoffMs } from '../../daemon/backoff.ts'
import type { Clock } from '../../daemon/clock.ts'
import { replaceFile } from '../../daemon/durable-file.ts'
import { isMissing } from '../../daemon/errors.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import { ConfigurationError } from '../../daemon/process/configuration-file.ts'
import { writeBootStatus } from './boot-status.ts'
import { JoinError } from './failures.ts'
import { type FirstBoot, readFirstBoot } from './first-boot-file.ts'
import { readIdentity } from './identity.ts'
import { join } from './join.ts'
import type { JoinNeeds } from './join-request.ts'
import { shred } from './shred.ts'

/** Where images keep what a user may write before the first boot; the first that is there counts. */
export const firstBootPaths = ['/boot/firmware/bramble.yaml', '/boot/bramble.yaml'] as const

export type FirstBootNeeds = {
  readonly paths: readonly string[]
  readonly dataDir: string
  readonly hostname: string
  readonly hardware: HardwareIdentity
  readonly obstacleTo: JoinNeeds['obstacleTo']
  readonly clock: Clock
  readonly random: () => number
  readonly signal: AbortSignal
  readonly log: Log
}

export type FirstBootEnd = 'joined' | 'nothing-to-do' | 'bad-file' | 'stopped'

/** It was started with the machine, and did not wait for us. */
const restartIt = "Run 'systemctl restart bramble-agent', or reboot"
const retries = { firstMs: 2_000, maxMs: 5 * 60_000 }

/** Tries for ever: the controller may be switched on, the network plugged in or the token made long after this machine. */
export async function firstBoot(needs: FirstBootNeeds): Promise<FirstBootEnd> {
  const { dataDir, log, signal } = needs
  const found = await firstOf(needs.paths)
  if (found === undefined) return 'nothing-to-do'
  const { path, source } = found
  if (await wasUsed(dataDir, source)) {
    await putAway(path, undefined, log)
    return 'nothing-to-do'
  }
  let wanted: FirstBoot
  let name: string
  try {
    wanted = readFirstBoot(source, path)
    name = nameFor(wanted, needs.hostname)
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    log.error('The first-boot file is wrong: correct it and reboot', { path, error })
    await report(path, [storyOf(error), 'Correct the file and start the machine again.'], needs)
    return 'bad-file'
  }
  const before = await readIdentity(dataDir).catch(() => undefined)
  const joined = await joinAtLast(wanted, name, (lines) => report(path, lines, needs), needs)
  if (joined === undefined) return 'stopped'
  log.info('Joined', { node: joined, controller: wanted.url.origin })
  await report(path, [`Joined ${wanted.url.origin} as node ${joined}.`], needs)
  if (before !== undefined)
    log.warn('The agent continues with its previous identity', { node: before.nodeName, remedy: restartIt })
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await replaceFile(markPath(dataDir), `${digestOf(source)}\n`)
  if (!signal.aborted) await putAway(path, wanted.token.id, log)
  return 'joined'
}

/** The name it joined with; undefined when `signal` stopped it. */
async function joinAtLast(
  wanted: FirstBoot,
  first: string,
  report: (lines: readonly string[]) => Promise<void>,
  needs: FirstBootNeeds,
): Promise<string | undefined> {
  const { dataDir, hardware, obstacleTo, clock, random, signal, log } = needs
  let nodeName = first
  let lastLogged = ''
  const attempt = async () => {
    const print = (progress: string) => log.debug('Joining', { progress })
    const waits = (request: string) => {
      log.warn('The request of this machine waits for an operator', { request })
      void report([`The request ${request} of this machine waits for an operator.`])
    }
    const warns = (because: string) => log.warn('A network of this machine has addresses of the fleet', { because })
    await join({ ...wanted, nodeName, dataDir }, { hardware, clock, signal, print, waits, warns, obstacleTo })
  }
  const reportFailure = async (error: unknown) => {
    const story = storyOf(error)
    if (story === lastLogged) return
    const remedy = error instanceof JoinError ? error.remedy : undefined
    log.warn('Cannot join yet, trying again until it works', { error, ...(remedy !== undefined && { remedy }) })
    await report([
      `Cannot join yet: ${story}`,
      ...(remedy === undefined ? [] : [remedy]),
      'It is tried again until it works.',
    ])
    lastLogged = story
  }
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      await attempt()
      return nodeName
    } catch (error) {
      if (signal.aborted) return undefined
      const other = error instanceof JoinError && error.isNameTaken ? nameOfItsOwn(first, hardware) : undefined
      if (other !== undefined && other !== nodeName) {
        const how = { nodeName, instead: other, error }
        log.warn('The name is taken, using one with the serial number of this board', how)
        nodeName = other
        continue
      }
      await reportFailure(error)
      await clock.sleep(1_000 + backoffMs(failures, retries, random), signal)
    }
  }
  return undefined
}

async function report(path: string, lines: readonly string[], { clock, log }: FirstBootNeeds): Promise<void> {
  await writeBootStatus(dirname(path), lines, { nowMs: clock.wallMs(), log })
}

function nameFor({ nodeName }: FirstBoot, hostname: string): string {
  if (nodeName !== undefined) return nodeName
  const name = hostname.trim().toLowerCase()
  const problem = dnsSubdomainProblem(name)
  if (problem === undefined) return name
  throw new ConfigurationError('The hostname is not a valid node name:', [
    `nodeName: is missing, and the hostname ${JSON.stringify(hostname)} ${problem}`,
  ])
}

/** `pi-deadbeef`: the end of the board's serial number, or of the next best mark. Undefined where the machine shows none. */
function nameOfItsOwn(name: string, { boardSerial, systemUUID, machineID }: HardwareIdentity): string | undefined {
  const mark = (boardSerial ?? systemUUID ?? machineID)?.toLowerCase().replace(/[^a-z0-9]/g, '')
  return mark === undefined || mark === '' ? undefined : `${name.slice(0, 50).replace(/[-.]+$/, '')}-${mark.slice(-8)}`
}

async function firstOf(paths: readonly string[]): Promise<{ path: string; source: string } | undefined> {
  for (const path of paths) {
    try {
      return { path, source: await readFile(path, 'utf8') }
    } catch (cause) {
      if (!isMissing(cause)) throw new Error(`Cannot read ${path}`, { cause })
    }
  }
  return undefined
}

/** On a boot partition that takes no writes the file stays: it is not joined with twice. */
async function wasUsed(dataDir: string, source: string): Promise<boolean> {
  const mark = await readFile(markPath(dataDir), 'utf8').catch(() => '')
  return mark.trim() === digestOf(source)
}

function markPath(dataDir: string): string {
  return pathJoin(dataDir, 'first-boot.sha256')
}

function digestOf(source: string): string {
  return createHash('sha256').update(source).digest('hex')
}

async function putAway(path: string, tokenID: string | undefined, log: Log): Promise<void> {
  try {
    await shred(path)
    log.info('The first-boot file is overwritten and removed', { path })
  } catch (error) {
    const remedy = `Delete it by hand, and on the controller the token: bramble-controller token delete ${tokenID ?? 'ID'}`
    log.error('The first-boot file, which holds a token, cannot be removed', { path, error, remedy })
  }
}
