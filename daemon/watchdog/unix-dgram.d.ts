/** The part of unix-dgram we use. */
declare module 'unix-dgram' {
  export interface DatagramSocket {
    on(event: 'message', listener: (message: Buffer) => void): this
    on(event: 'error', listener: (error: Error) => void): this
    bind(path: string): void
    /** Answers before it returns. */
    send(message: Buffer, offset: number, length: number, path: string, answer: (error?: Error) => void): void
    close(): void
  }
  const unixDgram: { createSocket(type: 'unix_dgram', listener?: (message: Buffer) => void): DatagramSocket }
  export default unixDgram
}
