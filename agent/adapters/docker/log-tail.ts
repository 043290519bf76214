/** The end of what a container wrote, as Docker kept it. */
import type Dockerode from 'dockerode'
import { askMs, call } from './call.ts'

const headBytes = 8

/** However much it wrote, little of it is held at a time. */
export async function logTail(docker: Dockerode, id: string, mostLines: number, mostBytes: number): Promise<Buffer> {
  const tried = `Cannot read the log of container ${id}`
  const options = { stdout: true, stderr: true, follow: true, tail: mostLines } as const
  return await call(tried, askMs, async (abortSignal) => {
    const container = docker.getContainer(id)
    const { Config } = await container.inspect({ abortSignal })
    // `follow` only so that it comes as a stream: that of a container that ended ends too.
    const stream = await container.logs({ ...options, abortSignal })
    let [rest, tail] = [Buffer.alloc(0), Buffer.alloc(0)]
    for await (const chunk of stream) {
      if (Config.Tty) {
        tail = end(tail, Buffer.from(chunk), mostBytes)
        continue
      }
      rest = Buffer.concat([rest, Buffer.from(chunk)])
      // Eight bytes of head each, the last four of them its length.
      while (rest.length >= headBytes && rest.length >= headBytes + rest.readUInt32BE(4)) {
        const length = rest.readUInt32BE(4)
        tail = end(tail, rest.subarray(headBytes, headBytes + length), mostBytes)
        rest = rest.subarray(headBytes + length)
      }
    }
    return tail
  })
}

function end(before: Buffer, more: Buffer, most: number): Buffer<ArrayBuffer> {
  return Buffer.from(Buffer.concat([before, more]).subarray(-most))
}
