/** A Mosquitto in front of the controller that is measured, with the files that the controller writes for it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type ProcessFigures, processFigures } from './process-figures.ts'

export interface Front extends ProcessFigures {
  end(): Promise<void>
}

export type FrontSettings = {
  /** Where the controller keeps the files. */
  readonly files: string
  readonly port: number
  /** A node that must have its rights; undefined: none. */
  readonly node: string | undefined
}

/** Resolves when it listens, with the rights of the node. */
export async function startFront({ files, port, node }: FrontSettings): Promise<Front> {
  await until(async () => {
    const [list, configuration] = await Promise.all([textOf(files, 'access-list'), textOf(files, 'bramble.conf')])
    return configuration !== '' && (node === undefined || list.includes(`user system:node:${node}\n`))
  })
  const main = join(files, '..', 'mosquitto.main')
  await writeFile(main, `user root\ninclude_dir ${files}\nlog_dest none\n`)
  const child = spawn('/usr/sbin/mosquitto', ['-c', main], { stdio: 'ignore' })
  try {
    await until(() => listens(port))
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  return {
    ...processFigures(child.pid ?? 0),
    async end() {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    },
  }
}

function textOf(folder: string, name: string): Promise<string> {
  return readFile(join(folder, name), 'utf8').catch(() => '')
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  for (const endMs = performance.now() + 120_000; !(await isDone()); await delay(100)) {
    if (performance.now() > endMs) throw new Error('Mosquitto has not started within two minutes')
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
