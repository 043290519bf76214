/** Files with a password, a token or a key: other users of the machine must not be able to read them. */
import { open } from 'node:fs/promises'

const mostBytes = 65_536

/** `isFinal`: it stays so until a person changes the file. The text of the file is in no message. */
export class SecretFileError extends Error {
  readonly isFinal: boolean
  constructor(message: string, isFinal: boolean) {
    super(message)
    this.name = 'SecretFileError'
    this.isFinal = isFinal
  }
}

/** The whole text. Rejects with a SecretFileError that names the path. */
export async function readSecretFile(path: string): Promise<string> {
  try {
    const file = await open(path, 'r')
    try {
      const { mode, size } = await file.stat()
      if ((mode & 0o077) !== 0) throw new SecretFileError(`Other users can read ${path}: chmod 600 ${path}`, true)
      if (size > mostBytes) throw new SecretFileError(`${path} is longer than ${mostBytes} bytes`, true)
      return await file.readFile('utf8')
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof SecretFileError) throw error
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw new SecretFileError(`Cannot read ${path}: ${code}`, false)
  }
}

/** The first line, without spaces around it. Rejects with a SecretFileError, also where that line is empty. */
export async function readSecretLine(path: string): Promise<string> {
  const [line = ''] = (await readSecretFile(path)).split('\n')
  if (line.trim() === '') throw new SecretFileError(`${path} is empty`, true)
  return line.trim()
}
