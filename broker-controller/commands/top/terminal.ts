/** A terminal: its size, its keys, and lines on its alternate screen. It is restored however the program ends. */
import { writeSync } from 'node:fs'
import type { ReadStream, WriteStream } from 'node:tty'
import { enterText, frameText, leaveText, styledText } from './frame-text.ts'
import { keyDecoder } from './key-decoder.ts'
import type { Line, Size } from './top-screen.ts'
import type { Key } from './top-state.ts'

export type TerminalListener = {
  readonly onKey: (key: Key) => void
  /** Its size has changed, or it shows something else: all lines are drawn again. */
  readonly onChange: () => void
  /** The terminal is gone, or a signal ends the program. */
  readonly onEnd: () => void
}

export interface Terminal {
  size(): Size
  /** Left out while the terminal does not take what was sent before. */
  draw(lines: readonly Line[]): void
  close(): void
}

export type TerminalNeeds = {
  readonly input: ReadStream
  readonly output: WriteStream & { readonly fd: number }
  readonly isColoured: boolean
}

const most: Size = { columns: 1_000, rows: 500 }

/** The alternate screen, until `close` or the end of the program. */
export function enterTerminal({ input, output, isColoured }: TerminalNeeds, listener: TerminalListener): Terminal {
  let drawn: readonly string[] | undefined
  let isBlocked = false
  let isEntered = false

  const enter = () => {
    isEntered = true
    drawn = undefined
    input.setRawMode(true)
    output.write(enterText)
  }
  /** At once: the program may be ending. */
  const leave = () => {
    if (!isEntered) return
    isEntered = false
    try {
      input.setRawMode(false)
      writeSync(output.fd, leaveText)
    } catch {
      // The terminal is gone.
    }
  }
  const keysIn = keyDecoder()
  const onData = (piece: Buffer) => {
    for (const key of keysIn(piece)) {
      if (key.key === 'suspend') suspend()
      else {
        if (key.key === 'redraw') drawn = undefined
        listener.onKey(key)
      }
    }
  }
  const suspend = () => {
    leave()
    // Returns when the program continues: at once where no shell could continue it, and the kernel drops the signal (POSIX, orphaned
    // process groups), as under `ssh -t HOST bramble-controller top`.
    process.kill(process.pid, 'SIGTSTP')
    enter()
    listener.onChange()
  }
  const onResize = () => {
    drawn = undefined
    listener.onChange()
  }
  const onDrain = () => {
    isBlocked = false
    listener.onChange()
  }
  const end = () => listener.onEnd()

  process.once('exit', leave)
  for (const name of ['SIGHUP', 'SIGQUIT'] as const) process.on(name, end)
  input.on('data', onData).on('end', end).on('error', end)
  output.on('resize', onResize).on('drain', onDrain).on('error', end)
  enter()
  return {
    size() {
      const { columns = 80, rows = 24 } = output
      return { columns: Math.min(columns || 80, most.columns), rows: Math.min(rows || 24, most.rows) }
    },
    draw(lines) {
      if (isBlocked || !isEntered) return
      const next = lines.map((line) => styledText(line, isColoured))
      const text = frameText(drawn, next)
      drawn = next
      if (text !== '') isBlocked = !output.write(text)
    },
    close() {
      leave()
      process.off('exit', leave)
      for (const name of ['SIGHUP', 'SIGQUIT'] as const) process.off(name, end)
      input.off('data', onData).off('end', end).pause()
      output.off('resize', onResize).off('drain', onDrain)
    },
  }
}
