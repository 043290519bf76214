/**
 * KernelLog on `/dev/kmsg`. Each read returns one record, or EAGAIN at the end. Node.js cannot wait for a record without holding
 * a thread, so the file is polled: a read without a record takes some microseconds.
 */

import { closeSync, constants, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../../daemon/clock.ts'
import { codeOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import type { KernelLine, KernelLog } from '../../health/kernel-log.ts'

export type KernelLogNeeds = {
  /** `/`, or a saved tree, where `dev/kmsg` is a plain file. */
  readonly root: string
  readonly clock: Clock
  readonly log: Log
  /** Uptime of the machine without the time it was suspended. */
  readonly uptimeMs?: () => number
}

export interface KernelLogReader extends KernelLog {
  run(signal: AbortSignal): Promise<void>
}

const periodMs = 2_000
/** The kernel's limit of a record (CONSOLE_EXT_LOG_MAX); a smaller buffer is rejected. */
const recordBytes = 8_192
/** Records per pass, so that a kernel that logs fast does not block the event loop. */
const mostRecords = 400

/** The kernel's timestamps use the clock of `hrtime`. */
const uptimeOfThisMachine = () => Number(process.hrtime.bigint() / 1_000_000n)

export function kernelLog({ root, clock, log, uptimeMs = uptimeOfThisMachine }: KernelLogNeeds): KernelLogReader {
  const path = join(root, 'dev/kmsg')
  const listeners: ((line: KernelLine) => void)[] = []
  const buffer = Buffer.alloc(recordBytes)
  let file: number | undefined
  let isReadable = false
  let isLogged = false
  let rest = ''

  const emit = (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    const nowMs = uptimeMs()
    for (const line of lines) {
      const record = parseRecord(line, nowMs)
      if (record !== undefined) for (const listener of listeners) listener(record)
    }
  }

  const readRecord = (from: number): boolean => {
    try {
      const bytes = readSync(from, buffer, 0, recordBytes, null)
      if (bytes > 0) emit(buffer.toString('utf8', 0, bytes))
      return bytes > 0
    } catch (error) {
      const code = codeOf(error)
      if (code === 'EAGAIN') return false
      if (code !== 'EPIPE') throw error
      // Records were overwritten before they were read: the next read returns the oldest one left.
      log.debug('Lines of the kernel log were lost')
      return true
    }
  }

  /** True when there may be more. */
  const readSome = (from: number): boolean => {
    for (let records = 0; records < mostRecords; records++) if (!readRecord(from)) return false
    return true
  }

  const close = () => {
    if (file !== undefined) closeSync(file)
    file = undefined
  }

  /** Opens it first, if need be. True when there may be more. */
  const readOn = (): boolean => {
    try {
      file ??= openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
      const hasMore = readSome(file)
      isReadable = true
      return hasMore
    } catch (error) {
      if (!isLogged) log.info('The log of the kernel cannot be read here', { path, error })
      isLogged = true
      isReadable = false
      close()
      return false
    }
  }

  return {
    subscribe: (listener) => void listeners.push(listener),
    readable: () => isReadable,
    look() {
      try {
        if (file !== undefined) readSome(file)
      } catch (error) {
        log.debug('The log of the kernel cannot be read now', { error })
      }
    },
    async run(signal) {
      while (!signal.aborted) {
        const hasMore = readOn()
        await clock.sleep(hasMore ? 0 : isReadable ? periodMs : 30 * periodMs, signal)
      }
      close()
    },
  }
}

/** A priority is a level plus a facility times this. Only the kernel itself can write with facility 0. */
const levels = 8

/**
 * `6,339,5140900,-;text`; lines that begin with a blank belong to the record before and name its device. Undefined
 * also when a program wrote it.
 */
export function parseRecord(line: string, uptimeMs: number): KernelLine | undefined {
  const match = /^(\d+),\d+,(\d+),[^;]*;(.*)$/.exec(line)
  if (match === null) return undefined
  const [, priority, microseconds, text = ''] = match
  if (Number(priority) >= levels) return undefined
  return {
    text: text.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    ageMs: Math.max(0, uptimeMs - Number(microseconds) / 1000),
  }
}
