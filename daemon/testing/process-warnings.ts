/** Warnings that this process emits while a test runs: a listener that leaks, an API that goes away. */

/** Resolves to the warnings that `work` makes this process emit, each as `Name: message`. */
export async function warningsDuring(work: () => Promise<unknown>): Promise<readonly string[]> {
  const warnings: string[] = []
  const note = ({ name, message }: Error) => void warnings.push(`${name}: ${message}`)
  process.on('warning', note)
  try {
    await work()
    await new Promise((resolve) => setImmediate(resolve)) // emitted on the next tick
  } finally {
    process.off('warning', note)
  }
  return warnings
}
