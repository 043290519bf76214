/** Programs of this host, with a deadline. */
import { execFile } from 'node:child_process'
import { patience } from './patience.ts'

export type Outcome = { readonly code: number; readonly stdout: string; readonly stderr: string }

export type CommandOptions = { readonly withinMs?: number; readonly input?: string }

/** Its end, whatever it is; a signal counts as 128. */
export function command(
  file: string,
  args: readonly string[],
  { withinMs = 60_000, input }: CommandOptions = {},
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      file,
      [...args],
      { timeout: withinMs * patience, killSignal: 'SIGKILL', maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 128
        if (error !== null && error.code === 'ENOENT') reject(new Error(`${file} is not installed`, { cause: error }))
        else resolve({ code, stdout, stderr })
      },
    )
    child.stdin?.on('error', () => undefined) // it ended before it read everything
    child.stdin?.end(input ?? '')
  })
}

const patienceMs = 90_000

/** A command with these arguments that takes longer hangs: kubectl waits by itself for as long as its `--timeout`. */
export function longestMs(args: readonly string[]): number {
  const [, seconds = '0'] = /--timeout=(\d+)s/.exec(args.join(' ')) ?? []
  return patienceMs + Number(seconds) * 1000
}

/** What it printed. Throws when it fails. */
export async function commandOrThrow(file: string, args: readonly string[], options?: CommandOptions): Promise<string> {
  const { code, stdout, stderr } = await command(file, args, options)
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`)
  return stdout
}

/** `command` in the network namespace `space`, and with the files of this host: `ip netns exec` hides the control groups. */
export function inSpace(space: string | undefined, ...command: readonly string[]): readonly string[] {
  return space === undefined ? command : ['nsenter', `--net=/run/netns/${space}`, ...command]
}
