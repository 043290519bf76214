/**
 * Was the machine started anew since we last ran, do its boots last, and does one pod break them off? One small file, written
 * twice a boot: at the first start of the agent and once the boot has lasted. After a boot that broke off it is written
 * for each pod that is started, and once the suspect has done no harm, until one lasts. It names boots and no times: the
 * clock may have been wrong in any of them.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../daemon/clock.ts'
import { replaceFile } from '../../daemon/durable-file.ts'
import type { Log } from '../../daemon/log.ts'
import { type BootNote, type BootVerdict, bootLastsMs, guiltyAfter, judgeBoots } from '../health/boot-loop.ts'
import type { StartGate } from '../pods/start-gate.ts'

export interface BootRecord {
  /** Another boot is on record. */
  readonly rebooted: boolean
  /** How many boots before this one did not last, in a row. */
  readonly shortBoots: number
  /**
   * Said again and again while this boot goes on. Put on record are that it has lasted, that a suspect did no harm, and
   * who need not be held back any more. A card that takes no writes is no reason to fail.
   */
  goesOn(uptimeMs: number): Promise<void>
  /** We are told to stop: what comes is no power cut. */
  ends(): Promise<void>
  /** Holds back a pod that takes the machine down. */
  startGate(needs: { readonly clock: Clock; readonly log: Log }): StartGate
}

type BootFile = { readonly boots: readonly BootNote[]; readonly held: readonly string[] }

const kept = 8
/** A suspect waits so long for the machine to go down without it; a pod is to be back within half a minute. */
const quietMs = 10_000
/** Who takes the machine down does so within this time; later it is the supply, or somebody's hand. */
const harmMs = 2 * 60_000
const heldMs = 3600_000
const clearedMs = 10 * 60_000

export async function openBootRecord(dataDirectory: string, bootID: string): Promise<BootRecord> {
  const path = join(dataDirectory, 'boot-id')
  const file = parseBootFile(await readFile(path, 'utf8').catch(() => ''))
  const isKnown = bootID === '' || file.boots[0]?.bootID === bootID
  const earlier = isKnown ? file.boots.slice(1) : file.boots
  let held: readonly string[] = file.held
  const verdict: BootVerdict = judgeBoots(earlier, new Set(held))
  let current: BootNote = (isKnown ? file.boots[0] : undefined) ?? { bootID }
  let written: Promise<void> = Promise.resolve()
  /** One after the other: several pods start at once. */
  const write = () => {
    written = written.then(async () => {
      if (bootID === '') return
      const text = bootFileText({ boots: [current, ...earlier].slice(0, kept), held: held.slice(-kept) })
      await replaceFile(path, text).catch(() => undefined)
    })
    return written
  }
  if (!isKnown) {
    if (verdict.guilty !== undefined) held = [...held, verdict.guilty]
    if (verdict.trial !== undefined) current = { ...current, trial: verdict.trial }
    await write()
  } else if (current.ended) {
    const { ended: _, ...goesOn } = current
    current = goesOn
    await write()
  }
  let lookAtPods = async (): Promise<void> => undefined
  const firstLasting = earlier.findIndex(({ lasted }) => lasted)

  return {
    rebooted: !isKnown && file.boots.length > 0,
    shortBoots: firstLasting === -1 ? earlier.length : firstLasting,
    async goesOn(uptimeMs) {
      await lookAtPods()
      if (uptimeMs < bootLastsMs || current.lasted || bootID === '') return
      current = { bootID, lasted: true }
      await write()
    },
    async ends() {
      if (current.lasted || current.ended || bootID === '') return
      current = { ...current, ended: true }
      await write()
    },
    startGate({ clock, log }) {
      const bornMs = clock.monotonicMs()
      const told = new Set<string>()
      /** Of those that matter only: pods come and go for years. */
      const startedMs = new Map<string, number>()
      let quietUntilMs: number | undefined
      // An agent before us in this boot started it, no later than now.
      if (current.trial !== undefined && current.began) startedMs.set(current.trial, bornMs)
      if (held.length > 0) log.warn('Pods that took the machine down are held back', { held })

      const goesOnAfter = (uid: string, ms: number) =>
        (startedMs.get(uid) ?? Number.POSITIVE_INFINITY) + ms <= clock.monotonicMs()
      lookAtPods = async () => {
        const { trial, began, ...rest } = current
        if (trial !== undefined && began && goesOnAfter(trial, harmMs)) {
          current = { ...rest, trial }
          await write()
        }
        const harmless = held.filter((uid) => goesOnAfter(uid, clearedMs))
        if (harmless.length === 0) return
        held = held.filter((uid) => !harmless.includes(uid))
        await write()
        log.info('Pods that were held back do no harm any more', { podUIDs: harmless })
      }

      return {
        hold(uid) {
          const nowMs = clock.monotonicMs()
          const isNews = !told.has(uid)
          const wait = (untilMs: number, message: string) => {
            if (untilMs <= nowMs) return undefined
            told.add(uid)
            return { reason: 'BootLoop', message, againInMs: untilMs - nowMs, isNews }
          }
          if (startedMs.has(uid)) return undefined
          if (held.includes(uid)) return wait(bornMs + heldMs, heldMessage)
          if (current.trial !== uid || current.began || current.lasted) return undefined
          quietUntilMs ??= nowMs + quietMs
          return wait(quietUntilMs, trialMessage(verdict.brokenOff))
        },
        async starting(uid) {
          const isHeld = held.includes(uid)
          const isWatched = verdict.watch && !current.lasted && !verdict.acquitted.has(uid)
          if (startedMs.has(uid) || (!isHeld && !isWatched)) return
          startedMs.set(uid, clock.monotonicMs())
          if (isHeld) return
          current = current.trial === uid ? { ...current, began: true } : { ...current, last: uid }
          await write()
        },
      }
    },
  }
}

const heldMessage = `The machine went down ${guiltyAfter} times in a row within two minutes of this pod's start, and not before it: it is held back so that the others can run. Mend the pod and make it anew (delete it, or change its file); as it is, it is tried again after an hour`

function trialMessage(times: number): string {
  return `The machine went down ${times} times in a row soon after its start, without a shutdown: this pod waits ${quietMs / 1000} s to see whether it does so without it`
}

/** A line for each boot, the newest first: its id, and what is to be known of it. Words nobody knows are passed over. */
function parseBootFile(text: string): BootFile {
  const lines = text.split('\n').flatMap((line) => (/^[\w-]+( [\w=.:-]+)*$/.test(line) ? [line.split(' ')] : []))
  const held = lines.flatMap(([first, ...uids]) => (first === 'held' ? uids : []))
  const boots = lines.flatMap(([bootID = '', ...words]): BootNote[] => {
    if (bootID === 'held') return []
    const wordOf = (name: string) => words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
    const [last, trial] = [wordOf('last'), wordOf('trial')]
    return [
      {
        bootID,
        ...(words.includes('lasted') && { lasted: true }),
        ...(words.includes('ended') && { ended: true }),
        ...(last && { last }),
        ...(trial && { trial }),
        ...(words.includes('began') && { began: true }),
      },
    ]
  })
  return { boots, held }
}

function bootFileText({ boots, held }: BootFile): string {
  const lines = boots.map(({ bootID, lasted, ended, last, trial, began }) =>
    [
      bootID,
      ...(lasted ? ['lasted'] : []),
      ...(ended ? ['ended'] : []),
      ...(last === undefined ? [] : [`last=${last}`]),
      ...(trial === undefined ? [] : [`trial=${trial}`]),
      ...(began ? ['began'] : []),
    ].join(' '),
  )
  return `${[...lines, ...(held.length === 0 ? [] : [`held ${held.join(' ')}`])].join('\n')}\n`
}
